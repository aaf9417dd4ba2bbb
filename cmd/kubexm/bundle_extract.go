package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/report"
)

func (a *app) bundleExtract() *cobra.Command {
	f, base := &policyFlags{}, &baseFlags{}
	var files, layout, oci string
	cmd := &cobra.Command{
		Use:   "extract ARCHIVE [NAME...]",
		Short: "Take files or images out of a bundle",
		Long: `Take out of a bundle what other tools are to read, every byte checked on the way:

  --files DIR   binaries and files, as DIR/COMPONENT/VERSION/OS-ARCH/NAME; packages of an
                operating system as a repository that apt or dnf takes
  --oci DIR     images as an OCI layout, each under its own reference, for oras, crane, skopeo
  --layout DIR  the bundle as it is, as an OCI layout with the root alone in index.json

Out of a delta comes what it holds, and with --base the rest.

With names (an id, a component, an image's name or reference), only these. Nothing stands
under DIR that was not checked; a folder that is not empty is refused.`,
		Example: `  kubexm bundle extract --key cosign.pub demo.tar.zst \
    --files bin kubelet kubectl
  kubexm bundle extract --key cosign.pub demo.tar.zst --oci images
  oras manifest fetch --oci-layout images@sha256:…    # any image, by its digest
  skopeo inspect oci:images:ghcr.io/flannel-io/flannel:v0.28.9`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := base.check(); err != nil {
				return err
			}
			policy, err := a.policy(f, nil)
			if err != nil {
				return err
			}
			b, err := bundle.OpenPart(cmd.Context(), args[0], policy, bundle.Bases{Given: base.bases})
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			p := a.progress(a.output != "text")
			p.Phase("extract")
			o := bundle.ExtractOptions{Names: args[1:], Progress: p.Add}
			var n int
			switch {
			case files != "":
				n, err = b.ExtractFiles(cmd.Context(), files, o)
			case oci != "":
				n, err = b.ExtractImages(cmd.Context(), oci, o)
			default:
				n, err = b.ExtractLayout(cmd.Context(), layout, o)
			}
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			if a.structured() {
				return a.printValue(map[string]any{"dir": files + oci + layout, "extracted": n})
			}
			_, err = fmt.Fprintf(a.out, "%s: %d extracted\n", files+oci+layout, n)
			return err
		},
	}
	f.add(cmd)
	base.add(cmd)
	cmd.Flags().StringVar(&files, "files", "", "write binaries and files under this folder")
	cmd.Flags().StringVar(&oci, "oci", "", "write images as an OCI layout in this folder")
	cmd.Flags().StringVar(&layout, "layout", "", "write the whole bundle as an OCI layout in this folder")
	cmd.MarkFlagsOneRequired("files", "oci", "layout")
	cmd.MarkFlagsMutuallyExclusive("files", "oci", "layout")
	for _, name := range []string{"files", "oci", "layout"} {
		_ = cmd.MarkFlagDirname(name)
	}
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}
