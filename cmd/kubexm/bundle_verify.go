package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
)

func (a *app) bundleVerify() *cobra.Command {
	f := &policyFlags{}
	workers := runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use:   "verify ARCHIVE",
		Short: "Check every byte of a bundle",
		Long: `Check who made a bundle, that it holds exactly what its root leads to, and every byte
of it: each blob against its digest, and all between the blobs against the one form that it
can have. Every finding is printed, with the name of the blob.

Exit codes: 0 whole and trusted, 4 refused.`,
		Example: "  kubexm bundle verify --allow-unsigned demo.tar.zst",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := os.Stat(args[0])
			if err != nil {
				return &coded{error: err, code: exitUsage}
			}
			p := a.progress(a.output != "text")
			p.phase("verify")
			p.expect(st.Size())
			start := time.Now()
			b, err := bundle.Verify(cmd.Context(), args[0], f.policy(), workers, p.add)
			p.stop()
			if err != nil {
				return refused(err)
			}
			defer b.Close()
			if a.output == "json" {
				return a.printJSON(struct {
					Root    string         `json:"root"`
					Signed  bool           `json:"signed"`
					Bytes   int64          `json:"bytes"`
					Summary bundle.Summary `json:"summary"`
				}{b.Root.Digest.String(), b.Signed, st.Size(), b.Summary})
			}
			fmt.Fprintf(a.out, "%s: whole, %s in %d files and %d images read in %s\n  root  %s\n", args[0], bundle.Bytes(st.Size()),
				b.Summary.Files, b.Summary.Images, time.Since(start).Round(100*time.Millisecond), b.Root.Digest)
			if !b.Signed {
				fmt.Fprintln(a.out, "  note  the bundle is not signed: its bytes are what its maker wrote, whoever that was")
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().IntVarP(&workers, "parallel", "p", workers, "how many blobs are read at once")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}
