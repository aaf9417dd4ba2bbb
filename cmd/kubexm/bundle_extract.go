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
		Short: "Extract files or images from a bundle",
		Long: `Extract files or images from a bundle for other tools. Every digest is verified.

  --files DIR   binaries and files, as DIR/COMPONENT/VERSION/OS-ARCH/NAME; operating system
                packages as a repository for apt or dnf
  --oci DIR     images as an OCI layout, each under its own reference, for oras, crane, skopeo
  --layout DIR  the unchanged bundle as an OCI layout, with only its root in index.json

From a delta the blobs that it contains are extracted; with --base also the others.

With names (an id, a component, an image's name or reference) only these are extracted. DIR must
be empty or not exist. Unverified content is never written there.`,
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
			b, err := bundle.OpenPartial(cmd.Context(), args[0], policy, bundle.Bases{Explicit: base.bases})
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
	cmd.Flags().StringVar(&layout, "layout", "", "write the complete bundle as an OCI layout in this folder")
	cmd.MarkFlagsOneRequired("files", "oci", "layout")
	cmd.MarkFlagsMutuallyExclusive("files", "oci", "layout")
	for _, name := range []string{"files", "oci", "layout"} {
		_ = cmd.MarkFlagDirname(name)
	}
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}
