package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sbom"
	"github.com/mensylisir/kubexm/installer/report"
)

func (a *app) bundleSBOM() *cobra.Command {
	f, format := &policyFlags{}, sbom.SPDX
	cmd := &cobra.Command{
		Use:   "sbom ARCHIVE",
		Short: "Print a bundle's bill of materials",
		Long: `Print what a bundle is made of, as SPDX 2.3 or CycloneDX 1.6, in JSON: every file and image
with version, sha256, package URL and where upstream has it. The bundle carries both from its
build, under its root; for one that was built without they are made of its lock. The same lock
gives the same bytes. What lies inside an image is not listed. With --key or an identity a bundle
that nobody of them signed is refused.`,
		Example: `  kubexm bundle sbom demo.tar.zst > demo.spdx.json
  kubexm bundle sbom demo.tar.zst --format cyclonedx > demo.cdx.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := a.reading(f)
			if err != nil {
				return err
			}
			b, err := bundle.OpenPart(cmd.Context(), args[0], policy, bundle.Bases{})
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			text, err := b.SBOM(format)
			if err != nil {
				return report.Refused(err)
			}
			_, err = a.out.Write(text)
			return err
		},
	}
	formats := []string{sbom.SPDX, sbom.CycloneDX}
	cmd.Flags().Var(&choice{value: &format, allowed: formats}, "format", "spdx or cyclonedx")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	f.add(cmd)
	completeArchives(cmd)
	return cmd
}
