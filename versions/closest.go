package versions

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// shown is the number of versions in an advice.
const shown = 5

// closest returns the versions of all that are closest to an unknown version, newest first:
// those of the same minor version, else of the same major version.
func closest(version string, all []string) []string {
	var out []string
	if v, err := semver.NewVersion(version); err == nil {
		near := func(same func(x *semver.Version) bool) {
			for _, a := range all {
				if x, err := semver.NewVersion(a); err == nil && same(x) && !slices.Contains(out, a) {
					out = append(out, a)
				}
			}
		}
		near(func(x *semver.Version) bool { return x.Major() == v.Major() && x.Minor() == v.Minor() })
		if len(out) == 0 {
			near(func(x *semver.Version) bool { return x.Major() == v.Major() })
		}
	}
	if len(out) == 0 {
		out = slices.Clone(all)
	}
	return out[:min(shown, len(out))]
}

// newestBuild returns the newest build of a release, such as 3.5.16-0 for v3.5.16.
func (c *Component) newestBuild(version string) (string, bool) {
	bare := strings.TrimPrefix(version, "v") + "-"
	var builds []string
	for v := range c.Versions {
		if strings.HasPrefix(v, bare) {
			builds = append(builds, v)
		}
	}
	if len(builds) == 0 {
		return "", false
	}
	return newestFirst(builds)[0], true
}
