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
	cmd := &cobra.Command{Use: "get", Short: "Show clusters, their nodes, releases, operations and endpoint", Args: cobra.NoArgs}
	cmd.AddCommand(a.getClusters(), a.getNodes(), a.getReleases(), a.getOperations(), a.getEndpoint())
	return cmd
}

// getFormats are the output formats of the get commands.
var getFormats = []string{"table", "wide", "json", "yaml", "name"}

// getFlags are the flags of the get commands.
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

// getNodes runs kubectl on a master, so that the workdir host needs no kubectl.
func (a *app) getNodes() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "nodes -f CONFIG", Short: "Show the nodes of a cluster", Args: cobra.NoArgs,
		Long: `List the nodes with kubectl on a master. Masters are tried in turn until an API server answers,
beginning with the master that the last operation used.`,
		Example: "  kubexm get nodes -f config.yaml\n  kubexm get nodes -f config.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			argv := []string{"get", "nodes"}
			if a.output != "table" {
				argv = append(argv, "-o", a.output)
			}
			return a.onMaster(cmd.Context(), f.workdir, c, func(ctx context.Context, h *steps.Host) error {
				out, err := kubectl.Run(ctx, h, argv...)
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

// listing is a list of objects of one kind, for every output format.
type listing struct {
	kind    string     // for -o name, "cluster"
	head    []string   // column headers; the first column is the name
	rows    [][]string // "" is shown as "-"
	narrow  int        // number of columns without -o wide
	values  any        // a slice, for -o json and yaml
	nothing string     // printed in place of an empty table
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
