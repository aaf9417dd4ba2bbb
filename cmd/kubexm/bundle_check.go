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
		Short: "Tell whether a bundle holds all that a config needs",
		Long: `Make the plan of every request (create, delete, reset) for a config, and look whether
the bundle holds each file and image that a step opens, for the platform of its host. No
host is asked. The config is the bundle's own unless -f gives another. A delta counts with all
that it expects of its base; --base looks whether that is there.

Exit codes: 0 complete, 2 mistakes in the config, 4 something is lacking.`,
		Example: `  kubexm bundle check --key cosign.pub demo.tar.zst
  kubexm bundle check --key cosign.pub -f other.yaml demo.tar.zst
  kubexm bundle check --key cosign.pub --unused demo.tar.zst`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCheck(cmd.Context(), f, args[0]) },
	}
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", also(useConfig, "without it the bundle's own"))
	cmd.Flags().BoolVar(&f.unused, "unused", false, "also list what no plan needs")
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
	b, err := bundle.OpenPart(ctx, archive, policy, bundle.Bases{Given: f.bases})
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
	var lack *plan.LackError
	if lacks != nil && !errors.As(lacks, &lack) {
		return site.Lacking(lacks)
	}
	if len(f.bases) > 0 {
		if err := b.Whole(); err != nil {
			return report.Refused(err)
		}
	}
	result := struct {
		Set    string            `json:"set"`
		Lacks  []plan.Lack       `json:"lacks"`
		Unused []string          `json:"unused,omitempty"`
		Delta  *bundle.DeltaView `json:"delta,omitempty"`
	}{Set: set, Lacks: []plan.Lack{}, Delta: b.DeltaView()}
	if lack != nil {
		result.Lacks = lack.Lacks
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
		return &refusal.Error{Err: errSaid, Kind: refusal.Content}
	}
	if lack != nil {
		return site.Lacking(lacks)
	}
	fmt.Fprintf(a.out, "%s: complete for cluster %s, Kubernetes %s\n", archive, c.Metadata.Name, set)
	if result.Delta != nil {
		fmt.Fprintf(a.out, "  part  %s\n", result.Delta.Expected())
	}
	if f.unused {
		fmt.Fprintf(a.out, "%s that no plan needs\n", console.Count(len(result.Unused), "artifact"))
		for _, id := range result.Unused {
			fmt.Fprintln(a.out, "  "+id)
		}
	}
	return nil
}
