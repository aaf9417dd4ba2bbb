package main

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/report"
)

type signFlags struct {
	passwordFlags
	key     string
	minimum string
	attach  string
	print   bool
}

func (f *signFlags) addMinimum(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.minimum, "minimum-kubexm", "", "oldest version of kubexm that may use the bundle; part of what is signed")
}

func (a *app) bundleSign() *cobra.Command {
	f := &signFlags{}
	cmd := &cobra.Command{
		Use:   "sign --sign-key cosign.key ARCHIVE",
		Short: "Sign a bundle",
		Long: `Sign a bundle's root digest, which determines every byte in it, together with its cluster,
serial, versions and platforms. A SLSA provenance statement is signed too. The signatures are
written into the archive's reserved slot; nothing else in the archive changes. They are also valid
for a delta of the same lock file, and "bundle push" sends them. A second signature by the same key
replaces the first; signatures by other keys stay.

The command also writes ARCHIVE.sigstore.json, a signature of the archive file for
"cosign verify-blob". Sign an archive before splitting it into volumes.

To sign with cosign itself (keyless, or with a key in a KMS or a hardware token): print the
statement with --print-statement, sign it with "cosign attest-blob", and add the result to the
archive with --attach.

Exit codes: 0 success, 2 the key cannot be opened, 4 not a bundle.`,
		Example: `  kubexm bundle sign --sign-key cosign.key demo.tar.zst
  kubexm bundle sign --sign-key cosign.key --minimum-kubexm 0.3.0 demo.tar.zst
  kubexm bundle sign --print-statement demo.tar.zst > statement.json
  cosign attest-blob --statement statement.json --new-bundle-format \
    --bundle signed.json
  kubexm bundle sign --attach signed.json demo.tar.zst`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runSign(cmd.Context(), f, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.key, "sign-key", "", useSignKey)
	renamed(cmd, "key", "sign-key")
	fs.StringVar(&f.attach, "attach", "", "add this signature, which cosign created, to the archive")
	fs.BoolVar(&f.print, "print-statement", false, "print the statement to sign, and sign nothing")
	f.addMinimum(cmd)
	f.passwordFlags.add(cmd)
	cmd.MarkFlagsOneRequired("sign-key", "attach", "print-statement")
	cmd.MarkFlagsMutuallyExclusive("sign-key", "attach", "print-statement")
	_ = cmd.MarkFlagFilename("sign-key", "key", "pem")
	_ = cmd.MarkFlagFilename("attach", "json")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runSign(ctx context.Context, f *signFlags, path string) error {
	u, err := sign.OpenUnsigned(ctx, path)
	if err != nil {
		return report.Refused(err)
	}
	claim, err := sign.ClaimOf(u.Lock, f.minimum)
	if err != nil {
		return err
	}
	switch {
	case f.print:
		st, err := sign.NewStatement(claim.Cluster, u.Root.String(), bundle.TypeClaim, claim)
		if err != nil {
			return err
		}
		return a.printValue(st)
	case f.attach != "":
		if err := sign.Attach(ctx, u, f.attach); err != nil {
			return report.Refused(err)
		}
		return a.printSigned(path, u.Root, "", "")
	}
	s, err := a.signer(ctx, f.key, &f.passwordFlags)
	if err != nil {
		return err
	}
	if err := a.maker(s).SignArchive(ctx, u, claim); err != nil {
		return report.Refused(err)
	}
	return a.printSigned(path, u.Root, "key "+s.KeyID(), path+bundle.DetachedSuffix)
}

// maker returns a sign.BundleSigner that signs with s.
func (a *app) maker(s *sign.Signer) sign.BundleSigner {
	return sign.BundleSigner{Signer: s, Version: ownVersion(), Log: a.log}
}

func (a *app) printSigned(path string, root digest.Digest, by, detached string) error {
	if a.structured() {
		return a.printValue(struct {
			Path     string `json:"path"`
			Root     string `json:"root"`
			By       string `json:"by,omitempty"`
			Detached string `json:"detached,omitempty"`
		}{path, root.String(), by, detached})
	}
	fmt.Fprintf(a.out, "%s: signed\n  root  %s\n", path, root)
	if by != "" {
		fmt.Fprintf(a.out, "  by    %s\n  file  %s, for cosign verify-blob\n", by, detached)
	}
	return nil
}
