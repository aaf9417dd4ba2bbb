package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/report"
)

func (a *app) bundleVerify() *cobra.Command {
	f, base := &policyFlags{}, &baseFlags{}
	workers := runtime.GOMAXPROCS(0)
	volume := ""
	cmd := &cobra.Command{
		Use:   "verify ARCHIVE",
		Short: "Check every byte of a bundle",
		Long: `Check who made a bundle, that it holds exactly what its root leads to, and every byte
of it: each blob against its digest, and all between the blobs against the one form that it
can have. Every finding is printed, with the name of the blob.

Of a bundle in volumes give the first one's name. --volume 3 reads the third alone, p1 the
first of parity, and compares it with the table of volumes beside it: while the disk is at
hand, whether or not the others are.

A delta ("kubexm bundle build --since") is checked as far as it goes, and what it expects of its
base is said. With --base that is read too, and a base that is another bundle, or that lacks
something, is refused.

Exit codes: 0 whole and trusted, 4 refused.`,
		Example: `  kubexm bundle verify --allow-unsigned delta.tar.zst --base demo.tar.zst
  kubexm bundle verify --allow-unsigned demo.tar.zst
  kubexm bundle verify --allow-unsigned demo.tar.zst.001
  kubexm bundle verify --volume 3 /media/disk/demo.tar.zst.001`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if volume != "" {
				return a.verifyVolume(cmd, args[0], volume)
			}
			if err := base.check(); err != nil {
				return err
			}
			policy, err := a.policy(f, nil)
			if err != nil {
				return err
			}
			size, data, err := verifySizes(cmd.Context(), args[0], policy, base.bases)
			if err != nil {
				return err
			}
			p := a.progress(a.output != "text")
			p.Phase("verify")
			p.Expect(data)
			start := time.Now()
			b, err := bundle.Verify(cmd.Context(), args[0], policy, workers, p.Add, base.bases...)
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			if a.structured() {
				return a.printValue(struct {
					Root     string            `json:"root"`
					Signed   bool              `json:"signed"`
					Bytes    int64             `json:"bytes"`
					Vouchers []bundle.Voucher  `json:"vouchers"`
					Delta    *bundle.DeltaView `json:"delta,omitempty"`
					Summary  bundle.Summary    `json:"summary"`
				}{b.Root.Digest.String(), b.Signed, size, append([]bundle.Voucher{}, b.Vouchers...), b.DeltaView(), b.Summary})
			}
			what, v := fmt.Sprintf("whole, %s in %d files%s and %d images", bundle.Bytes(size), b.Summary.Files, packagesText(b.Summary, false), b.Summary.Images), b.DeltaView()
			if v != nil {
				what = fmt.Sprintf("every byte in it is right, %s", bundle.Bytes(size))
			}
			fmt.Fprintf(a.out, "%s: %s read in %s\n  root  %s\n", args[0], what, time.Since(start).Round(100*time.Millisecond), b.Root.Digest)
			if v != nil {
				fmt.Fprintf(a.out, "  part  %s\n", v.Expected())
			}
			for _, x := range b.Vouchers {
				fmt.Fprintf(a.out, "  by    %s\n", x.By)
			}
			switch {
			case !b.Signed:
				fmt.Fprintln(a.out, "  note  the bundle is not signed: its bytes are what its maker wrote, whoever that was")
				if b.Beside != "" {
					fmt.Fprintf(a.out, "  note  %s is of the file alone, for cosign verify-blob, and was not looked at\n", b.Beside)
				}
			case len(b.Vouchers) == 0:
				fmt.Fprintln(a.out, "  note  the bundle is signed, and nobody said whose signature counts")
			}
			return nil
		},
	}
	f.add(cmd)
	base.add(cmd)
	cmd.Flags().IntVarP(&workers, "parallel", "p", workers, useParallel+"blobs")
	cmd.Flags().StringVar(&volume, "volume", "", "check one volume alone: its number, p1 for the first of parity")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// verifySizes gives the archive's size and the bytes that there are to read, which
// compression and a base make more. A file that is not there is a mistake in the
// command line, one that is no bundle a refusal.
func verifySizes(ctx context.Context, path string, policy bundle.Policy, bases []string) (size, data int64, err error) {
	b, err := bundle.OpenPart(ctx, path, policy, bundle.Bases{Given: bases})
	if err != nil {
		return 0, 0, report.Refused(err)
	}
	defer b.Close()
	return b.Size(), b.DataBytes(), nil
}
