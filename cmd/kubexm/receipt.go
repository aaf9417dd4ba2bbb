package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) receiptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Show and verify the receipts of operations",
		Long: `Each successful install, and each command that adds hosts to a cluster or deletes them, writes a
receipt to .kubexm/<cluster>/receipts: an in-toto statement with the operation, the bundle's root, the
config's digest, the hosts, the time, the user and the head of the audit log. With --sign-key it is
signed.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.receiptShow(), a.receiptVerify())
	return cmd
}

// addReceipt adds the flags to sign the receipt.
func (f *siteFlags) addReceipt(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.signing.key, "sign-key", "", also(useSignKey, "signs the receipt"))
	_ = cmd.MarkFlagFilename("sign-key", "key", "pem")
	f.signing.passwordFlags.add(cmd)
}

// openSigner opens the key before the run begins, while a user can still enter its
// password.
func (a *app) openSigner(ctx context.Context, f *siteFlags, s *siteRun) (err error) {
	if f.signing.key == "" || f.dryRun {
		return nil
	}
	s.signer, err = a.signer(ctx, f.signing.key, &f.signing.passwordFlags)
	return err
}

// writeReceipt writes the receipt of an operation that installs hosts or deletes them.
func (a *app) writeReceipt(f *siteFlags, s *siteRun) error {
	o := installer.ReceiptOptions{Journal: s.journal, Operation: s.Pipeline.Name, Signer: s.signer}
	what := "the cluster was created"
	switch s.Pipeline.Membership {
	case plan.RemovesHosts:
		what, o.Exists = "the hosts were deleted", s.Change.Exists
		for _, name := range s.Change.Targets {
			if h, was := s.Change.Before.Host(name); was {
				o.Left = append(o.Left, h)
			}
		}
	case plan.AddsHosts:
		what = "the hosts were added"
	}
	path, err := s.Session.Receipt(o)
	if err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s, but the receipt was not written: %w", what, err), Kind: refusal.Failed, Advice: "free space in the workdir and run the same command again: completed steps are skipped"}
	}
	if path == "" {
		return nil
	}
	if s.receipt = path; a.lines != nil {
		return nil
	}
	how := "unsigned; --sign-key signs it"
	if s.signer != nil {
		how = "signed with " + f.signing.key
	}
	_, err = fmt.Fprintf(a.out, "  receipt  %s (%s)\n", path, how)
	return err
}

func (a *app) receiptShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show FILE",
		Short:   "Print a receipt without verifying its signature",
		Example: "  kubexm receipt show .kubexm/demo/receipts/2026-01-31T08-00-00.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := sign.ReadFile(args[0])
			if err != nil {
				return err
			}
			v := installer.CheckedReceipt{}
			if v.Receipt, v.Root, v.Signed, err = installer.ReadReceipt(text); err != nil {
				return &refusal.Error{Err: fmt.Errorf("%s: %w", args[0], err), Kind: refusal.Content}
			}
			return a.printReceipt(args[0], v)
		},
	}
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) receiptVerify() *cobra.Command {
	var keys []string
	cmd := &cobra.Command{
		Use:   "verify --key cosign.pub FILE",
		Short: "Verify a receipt's signature, and the audit log beside it",
		Long: `Verify that a receipt is signed with a trusted key, and print it. If the receipt is in a cluster's
folder, the audit log there is verified too: it must contain the head that the receipt records.

Exit codes: 0 valid, 2 not a valid key, 4 unsigned, signed with another key, or the audit log was
modified.`,
		Example: "  kubexm receipt verify --key cosign.pub \\\n    .kubexm/demo/receipts/2026-01-31T08-00-00.sigstore.json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.verifyReceipt(keys, args[0]) },
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, useKey)
	_ = cmd.MarkFlagRequired("key")
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) verifyReceipt(keys []string, path string) error {
	v, err := installer.CheckReceipt(path, keys)
	if err != nil {
		return err
	}
	if err := a.printReceipt(path, v); err != nil || len(v.Problems) == 0 {
		return err
	}
	if !a.structured() {
		for _, p := range v.Problems {
			fmt.Fprintf(a.err, "error: audit log: %s\n", p)
		}
	}
	return &refusal.Error{Err: errReported, Kind: refusal.Content}
}

func (a *app) printReceipt(path string, v installer.CheckedReceipt) error {
	if a.structured() {
		return a.printValue(v)
	}
	signed := "unsigned: its author is not verified"
	switch {
	case v.Verified:
		signed = "valid"
	case v.Signed:
		signed = "not verified; kubexm receipt verify --key verifies it"
	}
	fmt.Fprintf(a.out, "%s\n  signature   %s\n", path, signed)
	fmt.Fprintf(a.out, "  operation   %s\n", cmp.Or(v.Operation, "create"))
	fmt.Fprintf(a.out, "  cluster     %s, Kubernetes %s\n", v.Cluster, v.Kubernetes)
	fmt.Fprintf(a.out, "  bundle      %s, serial %d\n", v.Root, v.Serial)
	fmt.Fprintf(a.out, "  config      %s\n", v.Config)
	fmt.Fprintf(a.out, "  made        %s by %s, kubexm %s\n", v.Made.Format(time.RFC3339), v.Who, v.Kubexm)
	for _, h := range v.Hosts {
		fmt.Fprintf(a.out, "  host        %s, %s\n", h.Name, h.Address)
	}
	for _, h := range v.Left {
		fmt.Fprintf(a.out, "  left        %s, %s\n", h.Name, h.Address)
	}
	fmt.Fprintf(a.out, "  journal     %s\n  audit head  %d:%s\n", v.Journal, v.Audit.Lines, v.Audit.SHA256)
	if v.AuditLog != "" {
		fmt.Fprintf(a.out, "  audit log   %s\n", v.AuditLog)
	}
	return nil
}
