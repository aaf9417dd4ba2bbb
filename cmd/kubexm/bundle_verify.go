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
		Short: "Verify the signature and every byte of a bundle",
		Long: `Verify a bundle's signature, that it contains exactly the blobs that its root refers to, and every
byte: each blob against its digest, and the bytes between blobs against the archive format. Every
problem is printed with the name of the blob.

For a bundle in volumes, specify the first volume. --volume 3 verifies only the third volume, and
p1 the first parity volume, against the table of volumes beside it. The disks with the other
volumes are not needed.

A delta ("kubexm bundle build --since") is verified as far as it contains blobs, and what it expects
from its base is printed. With --base the base is verified too. A base that is another bundle, or
that lacks a blob, is refused.

Exit codes: 0 complete and trusted, 4 refused.`,
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
					Root     string                     `json:"root"`
					Signed   bool                       `json:"signed"`
					Bytes    int64                      `json:"bytes"`
					Vouchers []bundle.AcceptedSignature `json:"vouchers"`
					Delta    *bundle.DeltaView          `json:"delta,omitempty"`
					Summary  bundle.Summary             `json:"summary"`
				}{b.Root.Digest.String(), b.Signed, size, append([]bundle.AcceptedSignature{}, b.AcceptedSignatures...), b.DeltaView(), b.Summary})
			}
			what, v := fmt.Sprintf("complete, %s in %d files%s and %d images", bundle.Bytes(size), b.Summary.Files, packagesText(b.Summary, false), b.Summary.Images), b.DeltaView()
			if v != nil {
				what = fmt.Sprintf("contents verified, %s", bundle.Bytes(size))
			}
			fmt.Fprintf(a.out, "%s: %s read in %s\n  root  %s\n", args[0], what, time.Since(start).Round(100*time.Millisecond), b.Root.Digest)
			if v != nil {
				fmt.Fprintf(a.out, "  delta %s\n", v.Expected())
			}
			for _, x := range b.AcceptedSignatures {
				fmt.Fprintf(a.out, "  by    %s\n", x.Signer)
			}
			switch {
			case !b.Signed:
				fmt.Fprintln(a.out, "  note  the bundle is not signed: its origin is not verified")
				if b.DetachedSignature != "" {
					fmt.Fprintf(a.out, "  note  %s signs only the file, for cosign verify-blob, and was not verified\n", b.DetachedSignature)
				}
			case len(b.AcceptedSignatures) == 0:
				fmt.Fprintln(a.out, "  note  the bundle is signed, but no key was given: its signature was not verified")
			}
			return nil
		},
	}
	f.add(cmd)
	base.add(cmd)
	cmd.Flags().IntVarP(&workers, "parallel", "p", workers, useParallel+"blobs")
	cmd.Flags().StringVar(&volume, "volume", "", "verify only this volume: its number, or p1 for the first parity volume")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// verifySizes returns the archive's size and the number of bytes to verify, which is
// larger because of compression and bases. It returns a usage error if the file does not
// exist, and a content error if it is not a bundle.
func verifySizes(ctx context.Context, path string, policy bundle.Policy, bases []string) (size, data int64, err error) {
	b, err := bundle.OpenPartial(ctx, path, policy, bundle.Bases{Explicit: bases})
	if err != nil {
		return 0, 0, report.Refused(err)
	}
	defer b.Close()
	return b.Size(), b.DataBytes(), nil
}
