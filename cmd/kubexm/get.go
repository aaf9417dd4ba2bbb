package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show clusters, their nodes, releases and operations", Args: cobra.NoArgs}
	cmd.AddCommand(a.getClusters(), a.getNodes(), a.getReleases(), a.getOperations())
	return cmd
}

// getFormats are the formats of what get shows.
var getFormats = []string{"table", "wide", "json", "yaml", "name"}

// getFlags are the flags of what get shows.
type getFlags struct{ config, workdir string }

func (f *getFlags) add(a *app, cmd *cobra.Command, needed bool, config string) {
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", also(useConfig, config))
	cmd.Flags().StringVar(&f.workdir, "workdir", ".", useWorkdir)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("workdir")
	if needed {
		_ = cmd.MarkFlagRequired("filename")
	}
	a.outputFlag(cmd, getFormats...)
}

// getNodes asks a master with kubectl there: this machine needs none.
func (a *app) getNodes() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "nodes -f CONFIG", Short: "Show the nodes of a cluster", Args: cobra.NoArgs,
		Long: `Ask an API server for the nodes, with kubectl on a master. Masters are asked one after another until
one answers, the one first that the last operation went through.`,
		Example: "  kubexm get nodes -f config.yaml\n  kubexm get nodes -f config.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			asked := []string{"get", "nodes"}
			if a.output != "table" {
				asked = append(asked, "-o", a.output)
			}
			return a.onMaster(cmd.Context(), f.workdir, c, func(ctx context.Context, h *steps.Host) error {
				out, err := kubectl.Run(ctx, h, asked...)
				if err != nil {
					return err
				}
				a.printed = true
				_, err = fmt.Fprint(a.out, out)
				return err
			})
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

// listing is what get shows of things of one kind, in every format.
type listing struct {
	kind    string     // "cluster", as -o name has it
	head    []string   // of the table; the first column is the name
	rows    [][]string // "" is shown as "-"
	narrow  int        // how many columns the table has; the others are of -o wide
	values  any        // a slice, for -o json and yaml
	nothing string     // what the table says where there is nothing
}

// show prints a listing in the format of -o.
func (a *app) show(l listing) error {
	switch a.output {
	case "json", "yaml":
		return a.printValue(l.values)
	case "name":
		for _, r := range l.rows {
			fmt.Fprintf(a.out, "%s/%s\n", l.kind, r[0])
		}
		return nil
	}
	if len(l.rows) == 0 {
		fmt.Fprintln(a.err, l.nothing)
		return nil
	}
	columns := l.narrow
	if a.output == "wide" {
		columns = len(l.head)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', 0)
	line(w, l.head[:columns])
	for _, r := range l.rows {
		line(w, r[:columns])
	}
	return w.Flush()
}

func line(w io.Writer, cells []string) {
	var out []string
	for _, c := range cells {
		out = append(out, cmp.Or(c, "-"))
	}
	fmt.Fprintln(w, strings.Join(out, "\t"))
}
