package apt

import (
	"fmt"
	"path"
)

// The priorities that apt gives repositories by itself.
const (
	ordinary     = 500
	upgradesOnly = 100 // NotAutomatic and ButAutomaticUpgrades, as backports are
	onDemand     = 1   // NotAutomatic, as experimental is
)

// Preference gives packages of some repositories another priority, as apt's
// preferences do. Empty fields match anything.
type Preference struct {
	Packages []string // names, with "*" and "?" for any; none: every package
	Suite    string   // the suite or codename that the release says
	Origin   string   // the release's Origin
	Version  string   // with "*" and "?" for any
	Priority int      // below 0 the package is not there; else the highest is taken
}

// pin gives the priority of a package of a repository: the first preference that
// names the package, else the first that is for every package, else the
// repository's own.
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

// glob matches; a malformed pattern matches nothing, and check tells of it.
func glob(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// check tells whether the patterns can be read.
func (p Preference) check() error {
	for _, pattern := range append([]string{p.Version}, p.Packages...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("the preference's %q is no pattern", pattern)
		}
	}
	return nil
}
