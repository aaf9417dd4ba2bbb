package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/discover"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
)

func (a *app) bundleImages() *cobra.Command {
	f := &sourceFlags{}
	cmd := &cobra.Command{
		Use:   "images -f CONFIG",
		Short: "List the images that a config's charts and manifests use",
		Long: `Render the charts of a config's add-ons with their values, for each of its Kubernetes versions.
Read the manifests of the add-ons and of the pod network. List every image that they use, where it
was found, and for which platforms the lock file has it. "kubexm bundle lock" adds images that
are not listed yet.

Images that a program chooses at run time cannot be found this way: list them in
spec.bundle.images. Images listed there that no chart or manifest uses are reported.

Charts and manifests that are not in the cache are downloaded; nothing else is written.`,
		Example: `  kubexm bundle images -f config.yaml
  kubexm bundle images -f config.yaml -o json | jq -r '.images[].image'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runImages(cmd.Context(), f) },
	}
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runImages(ctx context.Context, f *sourceFlags) error {
	r, err := a.resolve(f)
	if err != nil {
		return err
	}
	cache, release, err := a.heldCache(ctx, f)
	if err != nil {
		return err
	}
	defer release()
	p := a.progress(a.output != "text")
	defer p.Stop()
	c, err := a.client(f, cache, r.Cluster, p)
	if err != nil {
		return err
	}
	found, err := r.Discover(ctx, c, r.Lock)
	p.Stop()
	if err != nil {
		return report.Refused(err)
	}
	result := struct {
		Images  []bundle.DiscoveredImage `json:"images"`
		Unasked []string                 `json:"unasked"`
	}{bundle.DiscoveredImages(bundle.AddDiscovered(r.Lock, found), found), append([]string{}, bundle.Unreferenced(r.Cluster, found)...)}
	if a.structured() {
		return a.printValue(result)
	}
	return a.printImages(result.Images, result.Unasked)
}

func (a *app) printImages(rows []bundle.DiscoveredImage, unasked []string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tPLATFORMS\tFOUND IN")
	for _, r := range rows {
		for i, p := range r.Places {
			name, platforms := r.Reference, cmp.Or(strings.Join(r.Platforms, ","), "?")
			if i > 0 {
				name, platforms = "", ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, platforms, placeText(p))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, ref := range unasked {
		fmt.Fprintf(a.out, "%s is listed in spec.bundle.images, but no chart or manifest uses it\n", ref)
	}
	return nil
}

// noteFoundImages prints a note for each image that was found and not listed, and for
// each that is listed and not used.
func (a *app) noteFoundImages(c *manifest.Cluster, l *manifest.Lock, found []bundle.ReferencedImage) {
	for _, row := range bundle.DiscoveredImages(l, found) {
		if !row.Listed {
			fmt.Fprintf(a.err, "note: %s is added: %s uses it (%s)\n", row.Reference, strings.Join(row.Addons, ", "), placeText(row.Places[0]))
		}
	}
	for _, ref := range bundle.Unreferenced(c, found) {
		fmt.Fprintf(a.err, "note: %s is listed in spec.bundle.images, but no chart or manifest uses it\n", ref)
	}
}

// placeText formats the place where an image was found, on one line.
func placeText(p discover.Place) string {
	var parts []string
	for _, s := range []string{p.Chart, p.Template, strings.Trim(p.Kind+"/"+p.Name, "/"), p.Path} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}
