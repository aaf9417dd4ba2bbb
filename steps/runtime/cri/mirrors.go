package cri

import (
	"slices"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
)

// Mirrors say that every image comes from the site's registry.
type Mirrors struct {
	registry.Mapper
	Upstreams []string // upstream registries that the bundle has images of
	// Certs are what the registry's certificate is checked with and what it is shown.
	Certs func(*steps.Host) (registry.Certs, error)
	// Login gives the user who may pull.
	Login     func(*steps.Host) (user, password string, err error)
	PlainHTTP bool
	Insecure  bool // the registry's certificate is not checked
}

// Upstreams gives the registries of image references, each once.
func Upstreams(references []string) []string {
	var out []string
	for _, r := range references {
		n, err := reference.ParseNormalizedNamed(r)
		if err == nil && !slices.Contains(out, reference.Domain(n)) {
			out = append(out, reference.Domain(n))
		}
	}
	slices.Sort(out)
	return out
}
