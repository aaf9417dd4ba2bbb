package fetch

import (
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// variants returns the variants of an architecture that a machine of it runs, the best
// first. An image without a variant is taken as the first one, which is what builders omit.
// A lock has no variants, so later ones are not used.
func variants(arch string) []string {
	switch arch {
	case "amd64":
		return []string{"v1"}
	case "arm64":
		return []string{"v8"}
	case "arm":
		return []string{"v7", "v6", "v5"}
	}
	return nil
}

// rank returns how well an image for have runs on want: 0 is best; false means that it does
// not run.
func rank(want manifest.Platform, have *ocispec.Platform) (int, bool) {
	if have == nil || have.OS != want.OS || have.Architecture != want.Arch {
		return 0, false
	}
	if have.Variant == "" {
		return 0, true
	}
	n := slices.Index(variants(want.Arch), have.Variant)
	return n, n >= 0
}

// candidate is a manifest in an index.
type candidate struct {
	descriptor ocispec.Descriptor
	platform   *ocispec.Platform
}

// choose returns the best candidate for want; among equal ones the first, as runtimes do.
func choose(want manifest.Platform, all []candidate) (candidate, error) {
	best, bestRank := -1, 0
	for i, c := range all {
		if n, ok := rank(want, c.platform); ok && (best < 0 || n < bestRank) {
			best, bestRank = i, n
		}
	}
	if best < 0 {
		return candidate{}, fmt.Errorf("has no image for %s; it has %s", want, offered(all))
	}
	return all[best], nil
}

// offered lists the platforms of an index.
func offered(all []candidate) string {
	var names []string
	for _, c := range all {
		if c.platform == nil || c.platform.OS == "" {
			continue
		}
		s := c.platform.OS + "/" + c.platform.Architecture
		if c.platform.Variant != "" {
			s += "/" + c.platform.Variant
		}
		names = append(names, oneLine(s))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// attestation reports whether a descriptor in an index is not an image but a signature, an
// SBOM or a provenance, which builders add beside their images.
func attestation(d ocispec.Descriptor) bool {
	if d.Annotations["vnd.docker.reference.type"] != "" {
		return true
	}
	switch d.ArtifactType {
	case "", ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json": // an image: this is the media type of its config
	default:
		return true
	}
	return d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}

// machines removes the distribution from platforms, which images do not have.
func machines(platforms []manifest.Platform) []manifest.Platform {
	var out []manifest.Platform
	for _, p := range platforms {
		m := manifest.Platform{OS: p.OS, Arch: p.Arch}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b manifest.Platform) int { return strings.Compare(a.String(), b.String()) })
	return out
}
