package apt

import (
	"context"
	"errors"
	"fmt"
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
	var errs []error
	for _, s := range broken {
		if s.Given || wanted.related(s.Suite) {
			errs = append(errs, failed[s.String()])
		} else {
			a.note("passed over: %s", failed[s.String()])
		}
	}
	var out []Repository
	for _, x := range all {
		switch wanted.judge(x) {
		case counts:
			out = append(out, x)
		case passed:
			a.note("%s: passed over: not known to be of %s", x, wanted)
		case refused:
			errs = append(errs, &Refusal{Repository: x.String(), Reason: ErrOtherRelease,
				Detail: fmt.Sprintf("it is %s %s (%s), and wanted is %s", x.Release.Origin, x.Release.Version, x.Release.Codename, wanted)})
		}
	}
	if len(out) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("no repository is of %s for %s%s", wanted, r.Arch, strings.Join(append([]string{""}, a.Notes...), "; ")))
	}
	return out, errors.Join(errs...)
}

// wantedRelease is a distribution's release, and what it is called.
type wantedRelease struct {
	distribution, release string
	names                 []string // "bookworm", "oldstable"
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

// learn takes the names of the wanted release from the distribution's own.
func (w *wantedRelease) learn(r *Release) {
	if w.own(r) && w.is(r) {
		for _, x := range []string{r.Codename, r.Suite} {
			if x, _, _ = strings.Cut(x, "-"); x != "" {
				w.names = append(w.names, x)
			}
		}
	}
}

// related tells whether a suite is called after the wanted release, or no name
// of that is known.
func (w *wantedRelease) related(suite string) bool {
	for _, x := range w.names {
		if suite == x || strings.HasPrefix(suite, x+"-") || strings.HasPrefix(suite, x+"/") || strings.HasSuffix(suite, "-"+x) {
			return true
		}
	}
	return len(w.names) == 0
}

type verdict int

const (
	counts  verdict = iota
	passed          // told, and not read
	refused         // an error: a person named it
)

// judge tells what becomes of a repository.
func (w *wantedRelease) judge(x Repository) verdict {
	switch {
	case w.distribution == "" && w.release == "":
		return counts
	case w.own(x.Release):
		if w.is(x.Release) {
			return counts
		}
		if x.Given {
			return refused
		}
		return passed
	case x.Given:
		return counts // another maker's, whose names may mean anything
	case len(w.names) > 0 && (w.related(x.Suite) || x.Release.Codename != "" && w.related(x.Release.Codename)):
		return counts
	}
	return passed
}
