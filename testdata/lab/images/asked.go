package images

import (
	"io"
	"slices"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// askedFor are images that a lab has only where its config asks for them.
var askedFor = []recipe{
	{
		repository: "ghcr.io/kube-vip/kube-vip", tag: "{version}", component: "kube-vip",
		files: map[string]string{"kube-vip": "/kube-vip"}, entrypoint: []string{"/kube-vip"}, base: true,
	},
}

// AskedFor gives the rows whose images are among references.
func AskedFor(rows []components.Component, references []string) ([]components.Component, error) {
	var out []components.Component
	for _, r := range askedFor {
		c, err := components.Find(rows, r.component)
		if err != nil {
			return nil, err
		}
		if slices.Contains(references, r.reference(c)) {
			out = append(out, c)
		}
	}
	return out, nil
}

// LayoutAskedFor gives an OCI layout with the images of rows that AskedFor gave.
func LayoutAskedFor(cache, rootfs string, rows []components.Component, log io.Writer) (string, error) {
	var all []recipe
	for _, r := range askedFor {
		if slices.ContainsFunc(rows, func(c components.Component) bool { return c.Name == r.component }) {
			all = append(all, r)
		}
	}
	return layoutOf(all, cache, rootfs, rows, log)
}
