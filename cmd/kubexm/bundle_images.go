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
		Short: "Tell which images the charts and manifests of a config ask for",
		Long: `Render the charts of a config's add-ons with its values, for each of its Kubernetes
versions, read their manifests and the pod network's, and list every image that they ask
for: where each was found, and for which platforms the lock has it. "kubexm bundle lock"
adds to the lock what nobody lists.

What cannot be found this way belongs under spec.bundle.images: images that a program
chooses while it runs. Those that stand there and that nothing asks for are named, too.

Charts and manifests are fetched where the cache lacks them; nothing else is written.`,
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
		Images  []bundle.FoundImage `json:"images"`
		Unasked []string            `json:"unasked"`
	}{bundle.FoundImages(bundle.AddFound(r.Lock, found), found), append([]string{}, bundle.Unasked(r.Cluster, found)...)}
	if a.structured() {
		return a.printValue(result)
	}
	return a.printImages(result.Images, result.Unasked)
}

func (a *app) printImages(rows []bundle.FoundImage, unasked []string) error {
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
		fmt.Fprintf(a.out, "%s is listed in spec.bundle.images, and no chart or manifest asks for it\n", ref)
	}
	return nil
}

// sayFound tells which images nobody had listed, and which are listed in vain.
func (a *app) sayFound(c *manifest.Cluster, l *manifest.Lock, found []bundle.Found) {
	for _, row := range bundle.FoundImages(l, found) {
		if !row.Listed {
			fmt.Fprintf(a.err, "note: %s is added: %s asks for it (%s)\n", row.Reference, strings.Join(row.Addons, ", "), placeText(row.Places[0]))
		}
	}
	for _, ref := range bundle.Unasked(c, found) {
		fmt.Fprintf(a.err, "note: %s is listed in spec.bundle.images, and no chart or manifest asks for it\n", ref)
	}
}

// placeText is a place on one line.
func placeText(p discover.Place) string {
	var parts []string
	for _, s := range []string{p.Chart, p.Template, strings.Trim(p.Kind+"/"+p.Name, "/"), p.Path} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}
