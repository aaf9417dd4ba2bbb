package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/report"
)

func (a *app) bundleDiff() *cobra.Command {
	f := &policyFlags{}
	cmd := &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Compare two bundles or lock files",
		Long: `List the artifacts that were added, removed, or changed in version or digest between the first
and the second argument. The last line is the number of bytes that the first lacks.

Each argument is an archive, the first volume of one, or a lock file. Between two archives the
number of bytes is exact, by blob. A lock file lists no layers; with one the number is an upper
bound. With --key or an identity, an archive without a valid signature is refused.`,
		Example: `  kubexm bundle diff old.tar.zst new.tar.zst
  kubexm bundle diff old.tar.zst kubexm.lock    # what would change
  kubexm bundle diff old.tar.zst new.tar.zst -o json | jq .bytes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := a.reading(f)
			if err != nil {
				return err
			}
			var sides [2]*bundle.Side
			for i, path := range args {
				s, err := bundle.ReadSide(cmd.Context(), path, policy)
				if err != nil {
					return report.Refused(err)
				}
				sides[i] = s
			}
			d := bundle.Compare(sides[0], sides[1])
			if a.structured() {
				return a.printValue(d)
			}
			return a.printDiff(d)
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"tar.zst", "001", "lock"}, cobra.ShellCompDirectiveFilterFileExt
	}
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// printDiff writes a line for each difference: + added, - removed, ~ changed.
func (a *app) printDiff(d bundle.Diff) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(mark string, x bundle.Item, version string) {
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\t%s\n", mark, x.Kind, x.Name, version, cmp.Or(x.Platform, "any"), bundle.Bytes(x.Size))
	}
	for _, x := range d.Added {
		line("+", x, x.Version)
	}
	for _, x := range d.Removed {
		line("-", x, x.Version)
	}
	for _, c := range d.Changed {
		version := c.From.Version + " → " + c.To.Version
		if c.From.Version == c.To.Version {
			version = c.To.Version + " (other content)"
		}
		line("~", c.To, version)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	most := ""
	if !d.Exact {
		most = "at most "
	}
	_, err := fmt.Fprintf(a.out, "%d added, %d removed, %d changed, %d the same; the first lacks %s%s\n",
		len(d.Added), len(d.Removed), len(d.Changed), d.Same, most, bundle.Bytes(d.Bytes))
	return err
}
