package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

type checkFlags struct {
	policyFlags
	baseFlags
	config string
	unused bool
}

func (a *app) bundleCheck() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [-f CONFIG] ARCHIVE",
		Short: "Check that a bundle has every artifact that a config needs",
		Long: `Check that the bundle contains each file and image that a step reads, for the platform of its
host. The steps are those of the config's plans: create, delete and reset. No host is contacted. Without -f
the bundle's own config is used. A delta is checked together with the blobs that it expects from
its base; with --base they are checked to exist there.

Exit codes: 0 complete, 2 error in the config, 4 an artifact is missing.`,
		Example: `  kubexm bundle check --key cosign.pub demo.tar.zst
  kubexm bundle check --key cosign.pub -f other.yaml demo.tar.zst
  kubexm bundle check --key cosign.pub --unused demo.tar.zst`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCheck(cmd.Context(), f, args[0]) },
	}
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", also(useConfig, "without it the bundle's own"))
	cmd.Flags().BoolVar(&f.unused, "unused", false, "also list artifacts that no plan needs")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runCheck(ctx context.Context, f *checkFlags, archive string) error {
	if err := f.check(); err != nil {
		return err
	}
	own, err := a.ownConfig(f.config)
	if err != nil {
		return err
	}
	policy, err := a.policy(&f.policyFlags, own)
	if err != nil {
		return err
	}
	b, err := bundle.OpenPartial(ctx, archive, policy, bundle.Bases{Explicit: f.bases})
	if err != nil {
		return report.Refused(err)
	}
	defer b.Close()
	c, err := site.Config(own, cmp.Or(f.config, "config of "+archive), b, pipeline.Create())
	if err != nil {
		return err
	}
	set := c.Spec.Kubernetes.Version
	lacks := site.Complete(c, b.Lock)
	var lack *plan.MissingArtifactsError
	if lacks != nil && !errors.As(lacks, &lack) {
		return site.WrapMismatch(lacks)
	}
	if len(f.bases) > 0 {
		if err := b.CheckComplete(); err != nil {
			return report.Refused(err)
		}
	}
	result := struct {
		Set    string                 `json:"set"`
		Lacks  []plan.MissingArtifact `json:"lacks"`
		Unused []string               `json:"unused,omitempty"`
		Delta  *bundle.DeltaView      `json:"delta,omitempty"`
	}{Set: set, Lacks: []plan.MissingArtifact{}, Delta: b.DeltaView()}
	if lack != nil {
		result.Lacks = lack.Artifacts
	}
	if f.unused {
		gs, err := site.Plans(c)
		if err != nil {
			return err
		}
		result.Unused = plan.Unused(b.Lock, set, gs...)
	}
	if a.structured() {
		if err := a.printValue(result); err != nil || lack == nil {
			return err
		}
		return &refusal.Error{Err: errReported, Kind: refusal.Content}
	}
	if lack != nil {
		return site.WrapMismatch(lacks)
	}
	fmt.Fprintf(a.out, "%s: complete for cluster %s, Kubernetes %s\n", archive, c.Metadata.Name, set)
	if result.Delta != nil {
		fmt.Fprintf(a.out, "  delta %s\n", result.Delta.Expected())
	}
	if f.unused {
		fmt.Fprintf(a.out, "%s that no plan needs\n", console.FormatCount(len(result.Unused), "artifact"))
		for _, id := range result.Unused {
			fmt.Fprintln(a.out, "  "+id)
		}
	}
	return nil
}
