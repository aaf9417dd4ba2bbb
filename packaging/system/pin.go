package system

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// Options are the options of Pin.
type Options struct {
	// Base is the folder that paths in the config are relative to.
	Base string
	// Etc is the configuration folder of this machine, "" for /etc. Its apt or yum
	// repositories are used if the config lists none.
	Etc string
	// Now is the time at which signatures must be valid; zero for the current time.
	Now time.Time
}

// File is a file of a repository.
type File = packaging.File

// Pin resolves the packages that an artifact requests, and their dependencies. It returns
// the artifact with the packages and the repository's metadata as members. Base packages
// of the distribution are left out and listed, unless a package depends on exactly one
// version of them. The notes report what was skipped and what is not signed; they are
// also returned with an error. The result is deterministic for the same repositories.
func Pin(ctx context.Context, web packaging.Web, a manifest.Artifact, o Options) (manifest.Artifact, []string, error) {
	p, err := newPinning(web, a, o)
	if err == nil {
		switch p.set.Format {
		case manifest.Deb:
			err = p.deb(ctx)
		case manifest.RPM:
			err = p.rpm(ctx)
		default:
			err = fmt.Errorf("%q is not a package format", p.set.Format)
		}
	}
	if err == nil {
		err = p.repository()
	}
	if err != nil {
		return a, p.notes, fmt.Errorf("packages of %s for %s: %w", a.Name, a.Platform.Machine(), err)
	}
	return p.artifact, p.notes, nil
}

// pinning is the state of one Pin.
type pinning struct {
	web      packaging.Web
	artifact manifest.Artifact
	set      *manifest.PackageSet // the artifact's own
	base     string               // folder that the config's paths are relative to, absolute
	etc      string
	now      time.Time
	notes    []string
}

func newPinning(web packaging.Web, a manifest.Artifact, o Options) (*pinning, error) {
	p := &pinning{web: web, artifact: a, etc: o.Etc, now: o.Now}
	if a.Packages == nil || len(a.Packages.Want) == 0 {
		return p, fmt.Errorf("no packages are requested")
	}
	set := *a.Packages
	p.set, p.artifact.Packages = &set, &set
	if p.etc == "" {
		p.etc = "/etc"
	}
	if p.now.IsZero() {
		p.now = time.Now()
	}
	var err error
	p.base, err = filepath.Abs(o.Base)
	return p, err
}

func (p *pinning) note(format string, args ...any) {
	p.notes = append(p.notes, p.artifact.Name+": "+fmt.Sprintf(format, args...))
}

// heed adds warnings about sources to the notes, and returns errors about them.
func (p *pinning) heed(problems manifest.Problems) error {
	var wrong manifest.Problems
	for _, x := range problems {
		if x.Severity == manifest.Warning {
			p.note("%s", x)
		} else {
			wrong = append(wrong, x)
		}
	}
	return wrong.Err()
}

// wants returns the alternative names of each requested entry, in order of preference.
func (p *pinning) wants() ([][]string, error) {
	var out [][]string
	for _, entry := range p.set.Want {
		var names []string
		for name := range strings.SplitSeq(entry, "|") {
			name = strings.TrimSpace(name)
			if name == "" || strings.ContainsAny(name, " \t\r\n,") {
				return nil, fmt.Errorf("%q is not a package name", entry)
			}
			names = append(names, name)
		}
		out = append(out, names)
	}
	return out, nil
}

// closure solves the request for an installation with only the base packages, and returns
// the packages to include.
func (p *pinning) closure(ctx context.Context, u *packaging.Universe, want []packaging.Requirement) ([]*packaging.Package, error) {
	base, err := u.BaseClosure(ctx)
	if err != nil {
		return nil, fmt.Errorf("base packages: %w", err)
	}
	wanted, err := u.Solve(ctx, packaging.Request{Want: want, Installed: base})
	if err != nil {
		return nil, err
	}
	along, left := u.SelectBase(wanted, base)
	p.set.Base = names(left)
	return slices.Concat(wanted.Add, along), nil
}

// names returns the packages as sorted texts.
func names(packages []*packaging.Package) []string {
	var out []string
	for _, x := range packages {
		out = append(out, x.String())
	}
	slices.Sort(out)
	return out
}

// repository adds the repository's metadata to the packages.
func (p *pinning) repository() error {
	a := &p.artifact
	files, err := Metadata(*a)
	if err != nil {
		return err
	}
	for _, f := range files {
		a.Members = append(a.Members, pinned(f))
	}
	slices.SortFunc(a.Members, func(x, y manifest.Member) int { return strings.Compare(x.Path, y.Path) })
	a.Size = 0
	for _, m := range a.Members {
		a.Size += m.Size
	}
	return nil
}

// once returns the texts sorted and without duplicates.
func once(all []string) []string {
	set := map[string]bool{}
	for _, x := range all {
		set[x] = true
	}
	return slices.Sorted(maps.Keys(set))
}
