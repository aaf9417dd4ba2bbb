package apt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// releases downloads the release of every source, and returns the repositories of the
// requested distribution and release. It returns an error if a repository of the
// distribution itself is refused: an attacker could otherwise withhold its updates.
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

// counting returns the repositories of the requested release.
func (a *Archive) counting(all []Repository, broken []Source, failed map[string]error, wanted *wantedRelease, r Request) ([]Repository, error) {
	var errs []error
	for _, s := range broken {
		if s.Given && !calledAfter(s.Suite, wanted.others) || wanted.related(s.Suite) {
			errs = append(errs, failed[s.String()])
		} else {
			a.note("skipped: %s", failed[s.String()])
		}
	}
	var out []Repository
	for _, x := range all {
		if wanted.counts(x) {
			out = append(out, x)
			continue
		}
		what := strings.Join(strings.Fields(x.Release.Origin+" "+x.Release.Version), " ")
		a.note("%s: skipped: it is %s (%s), which is not known to be for %s", x, what, cmp.Or(x.Release.Codename, x.Release.Suite, "no name"), wanted)
	}
	if len(out) == 0 && len(errs) == 0 {
		errs = append(errs, &NoneError{Wanted: wanted.String(), Arch: r.Arch, Notes: slices.Clone(a.Notes)})
	}
	return out, errors.Join(errs...)
}

// NoneError is the error if no repository is of the requested release.
type NoneError struct {
	Wanted, Arch string
	Notes        []string // which repositories were read, and why they are skipped
}

func (e *NoneError) Error() string {
	return strings.Join(append([]string{"no repository is for " + e.Wanted + " on " + e.Arch}, e.Notes...), "; ")
}

// wantedRelease is the requested release of a distribution, with its names.
type wantedRelease struct {
	distribution, release string
	names                 []string // "bookworm", "oldstable"
	others                []string // codenames of the distribution's other releases
}

// String returns a text such as "debian 12".
func (w *wantedRelease) String() string {
	if w.distribution == "" && w.release == "" {
		return "any distribution"
	}
	return strings.TrimSpace(w.distribution + " " + w.release)
}

// own reports whether a release is published by the distribution.
func (w *wantedRelease) own(r *Release) bool {
	return strings.EqualFold(r.Origin, w.distribution)
}

// is reports whether a release of the distribution is the requested one: version "12.9"
// or "12-updates" for 12, codename "bookworm-security" for bookworm.
func (w *wantedRelease) is(r *Release) bool {
	for _, x := range []string{r.Version, r.Codename, r.Suite} {
		if x == w.release || strings.HasPrefix(x, w.release+".") || strings.HasPrefix(x, w.release+"-") {
			return true
		}
	}
	return false
}

// learn collects the names of the requested release, and the codenames of others, from
// the distribution's own repositories. Names such as "stable" in other repositories may
// have another meaning.
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

// related reports whether a suite is named after the requested release, or no name of
// that release is known.
func (w *wantedRelease) related(suite string) bool {
	return len(w.names) == 0 || calledAfter(suite, w.names)
}

// calledAfter reports whether a suite is one of the names, or one with a prefix or suffix.
func calledAfter(suite string, names []string) bool {
	return slices.ContainsFunc(names, func(x string) bool {
		return suite == x || strings.HasPrefix(suite, x+"-") || strings.HasPrefix(suite, x+"/") || strings.HasSuffix(suite, "-"+x)
	})
}

// counts reports whether a repository is of the requested release. A third-party
// repository of the config may have any name except that of another release of the
// distribution, because sources may be configured for several releases.
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
