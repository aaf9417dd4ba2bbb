package apt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// releases gets the release of every source, and gives the repositories that are
// of the wanted distribution and release. One of a distribution's own that is
// refused ends it: to go on without its updates would be what an attacker wants.
func (a *Archive) releases(ctx context.Context, web packaging.Web, r Request) ([]Repository, error) {
	keys := &keyrings{system: r.Keyrings, given: r.Keys}
	var all []Repository
	failed := map[string]error{}
	var broken []Source
	for _, s := range r.Sources {
		s.Suite = strings.ReplaceAll(s.Suite, "$(ARCH)", r.Arch)
		if !s.wants(r.Arch) {
			a.note("%s: not for %s", s, r.Arch)
			continue
		}
		release, err := fetchRelease(ctx, web, s, keys, r.Now)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			failed[s.String()] = err
			broken = append(broken, s)
			continue
		}
		all = append(all, Repository{s, release, s.String()})
	}
	wanted := &wantedRelease{distribution: r.Distribution, release: r.Release}
	for _, x := range all {
		wanted.learn(x.Release)
	}
	return a.counting(all, broken, failed, wanted, r)
}

// counting gives those of the repositories that are of the wanted release.
func (a *Archive) counting(all []Repository, broken []Source, failed map[string]error, wanted *wantedRelease, r Request) ([]Repository, error) {
	var errs []error
	for _, s := range broken {
		if s.Given && !calledAfter(s.Suite, wanted.others) || wanted.related(s.Suite) {
			errs = append(errs, failed[s.String()])
		} else {
			a.note("passed over: %s", failed[s.String()])
		}
	}
	var out []Repository
	for _, x := range all {
		if wanted.counts(x) {
			out = append(out, x)
			continue
		}
		what := strings.Join(strings.Fields(x.Release.Origin+" "+x.Release.Version), " ")
		a.note("%s: passed over: it is %s (%s), not known to be of %s", x, what, cmp.Or(x.Release.Codename, x.Release.Suite, "no name"), wanted)
	}
	if len(out) == 0 && len(errs) == 0 {
		errs = append(errs, &NoneError{Wanted: wanted.String(), Arch: r.Arch, Notes: slices.Clone(a.Notes)})
	}
	return out, errors.Join(errs...)
}

// NoneError tells that no repository is of the wanted release.
type NoneError struct {
	Wanted, Arch string
	Notes        []string // what was read, and why it does not count
}

func (e *NoneError) Error() string {
	return strings.Join(append([]string{"no repository is of " + e.Wanted + " for " + e.Arch}, e.Notes...), "; ")
}

// wantedRelease is a distribution's release, and what it is called.
type wantedRelease struct {
	distribution, release string
	names                 []string // "bookworm", "oldstable"
	others                []string // codenames of the distribution's other releases
}

// String gives "debian 12".
func (w *wantedRelease) String() string {
	if w.distribution == "" && w.release == "" {
		return "any distribution"
	}
	return strings.TrimSpace(w.distribution + " " + w.release)
}

// own tells whether a release is the distribution's.
func (w *wantedRelease) own(r *Release) bool {
	return strings.EqualFold(r.Origin, w.distribution)
}

// is tells whether one of the distribution's own is of the wanted release: its
// version "12.9" or "12-updates" of 12, its codename "bookworm-security" of bookworm.
func (w *wantedRelease) is(r *Release) bool {
	for _, x := range []string{r.Version, r.Codename, r.Suite} {
		if x == w.release || strings.HasPrefix(x, w.release+".") || strings.HasPrefix(x, w.release+"-") {
			return true
		}
	}
	return false
}

// learn takes the names of the wanted release from the distribution's own, and the
// codenames of others: what a suite like "stable" is called elsewhere says nothing.
func (w *wantedRelease) learn(r *Release) {
	if !w.own(r) {
		return
	}
	suite, _, _ := strings.Cut(r.Suite, "-")
	codename, _, _ := strings.Cut(r.Codename, "-")
	into := &w.names
	if !w.is(r) {
		into, suite = &w.others, ""
	}
	for _, x := range []string{codename, suite} {
		if x != "" {
			*into = append(*into, x)
		}
	}
}

// related tells whether a suite is called after the wanted release, or no name
// of that is known.
func (w *wantedRelease) related(suite string) bool {
	return len(w.names) == 0 || calledAfter(suite, w.names)
}

// calledAfter tells whether a suite bears one of some names, alone or with more to it.
func calledAfter(suite string, names []string) bool {
	return slices.ContainsFunc(names, func(x string) bool {
		return suite == x || strings.HasPrefix(suite, x+"-") || strings.HasPrefix(suite, x+"/") || strings.HasSuffix(suite, "-"+x)
	})
}

// counts tells whether a repository is of the wanted release. One that a person
// named, and another than the distribution made, may call itself anything, but not
// after another release of the distribution: sources are named for several at once.
func (w *wantedRelease) counts(x Repository) bool {
	named := calledAfter(x.Suite, w.names) || calledAfter(x.Release.Codename, w.names)
	switch {
	case w.distribution == "" && w.release == "":
		return true
	case w.own(x.Release):
		return w.is(x.Release)
	case x.Given:
		return named || !calledAfter(x.Suite, w.others) && !calledAfter(x.Release.Codename, w.others)
	}
	return named
}
