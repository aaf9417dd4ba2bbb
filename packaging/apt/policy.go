package apt

import (
	"fmt"
	"path"
)

// The default priorities of repositories in apt.
const (
	ordinary     = 500
	upgradesOnly = 100 // NotAutomatic and ButAutomaticUpgrades, such as backports
	onDemand     = 1   // NotAutomatic, such as experimental
)

// Preference sets the priority of packages of some repositories, like apt's preferences.
// Empty fields match anything.
type Preference struct {
	Packages []string // names, with "*" and "?" for any; none: every package
	Suite    string   // the suite or codename of the release
	Origin   string   // the release's Origin
	Version  string   // with "*" and "?" for any
	Priority int      // below 0 the package is excluded; else the highest priority wins
}

// pin returns the priority of a package of a repository: that of the first preference
// for the package, else of the first preference for all packages, else the repository's.
func pin(preferences []Preference, r *Release, name, version string) int {
	for _, specific := range []bool{true, false} {
		for _, p := range preferences {
			if specific == (len(p.Packages) > 0) && p.matches(r, name, version) {
				return p.Priority
			}
		}
	}
	switch {
	case r.NotAutomatic && r.ButAutomaticUpgrades:
		return upgradesOnly
	case r.NotAutomatic:
		return onDemand
	}
	return ordinary
}

func (p Preference) matches(r *Release, name, version string) bool {
	if p.Suite != "" && p.Suite != r.Suite && p.Suite != r.Codename || p.Origin != "" && p.Origin != r.Origin {
		return false
	}
	if p.Version != "" && !glob(p.Version, version) {
		return false
	}
	for _, pattern := range p.Packages {
		if glob(pattern, name) {
			return true
		}
	}
	return len(p.Packages) == 0
}

// glob reports whether a pattern matches; a malformed pattern matches nothing, and check
// reports it.
func glob(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// check returns an error for a malformed pattern.
func (p Preference) check() error {
	for _, pattern := range append([]string{p.Version}, p.Packages...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q in a preference is not a valid pattern", pattern)
		}
	}
	return nil
}
