package cri

import (
	"slices"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
)

// Mirrors is the configuration with which every image is pulled from the site's registry.
type Mirrors struct {
	registry.Mapper
	Upstreams []string // upstream registries that the bundle has images of
	// Certs returns the CA for the registry's certificate, and the client certificate.
	Certs func(*steps.Host) (registry.Certs, error)
	// Login returns the user that may pull.
	Login     func(*steps.Host) (user, password string, err error)
	PlainHTTP bool
	Insecure  bool // the registry's certificate is not verified
}

// Upstreams returns the registries of image references, sorted and without duplicates.
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
