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
		Long: `Print a bundle's software bill of materials (SBOM) as SPDX 2.3 or CycloneDX 1.6 in JSON. It lists
every file and image with version, sha256, package URL and download address; it does not list the
contents of images.

Both formats are stored in the bundle, under its root. For a bundle without them they are generated
from its lock file; the same lock file gives the same bytes. With --key or an identity, a bundle
without a valid signature is refused.`,
		Example: `  kubexm bundle sbom demo.tar.zst > demo.spdx.json
  kubexm bundle sbom demo.tar.zst --format cyclonedx > demo.cdx.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := a.reading(f)
			if err != nil {
				return err
			}
			b, err := bundle.OpenPartial(cmd.Context(), args[0], policy, bundle.Bases{})
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
