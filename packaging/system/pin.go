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

// Options say where and when packages are pinned.
type Options struct {
	// Base is the folder that paths in the config start from.
	Base string
	// Etc is the configuration of the machine, "" for /etc. Its apt or yum repositories
	// count where the config names none.
	Etc string
	// Now is when signatures have to be valid; zero: the present.
	Now time.Time
}

// File is a file of a repository.
type File = packaging.File

// Pin finds the packages that an artifact wants, all that these need, and gives the
// artifact with them and the repository's own files for its members. What of the
// distribution every installation has is left out, and listed, unless one of the
// packages goes with just one version of it. The notes are for people: what was
// passed over, and where nobody vouches for what was found; they are there beside an
// error too. Unchanged repositories give an unchanged artifact.
func Pin(ctx context.Context, web packaging.Web, a manifest.Artifact, o Options) (manifest.Artifact, []string, error) {
	p, err := newPinning(web, a, o)
	if err == nil {
		switch p.set.Format {
		case manifest.Deb:
			err = p.deb(ctx)
		case manifest.RPM:
			err = p.rpm(ctx)
		default:
			err = fmt.Errorf("%q is no format of packages", p.set.Format)
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

// pinning is one Pin at work.
type pinning struct {
	web      packaging.Web
	artifact manifest.Artifact
	set      *manifest.PackageSet // the artifact's own
	base     string               // where the config's paths start, absolute
	etc      string
	now      time.Time
	notes    []string
}

func newPinning(web packaging.Web, a manifest.Artifact, o Options) (*pinning, error) {
	p := &pinning{web: web, artifact: a, etc: o.Etc, now: o.Now}
	if a.Packages == nil || len(a.Packages.Want) == 0 {
		return p, fmt.Errorf("no package is wanted")
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

// heed makes notes of what is passed over in sources, and an error of mistakes in them.
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

// wants gives the names of each wanted entry, the one wanted most first.
func (p *pinning) wants() ([][]string, error) {
	var out [][]string
	for _, entry := range p.set.Want {
		var names []string
		for name := range strings.SplitSeq(entry, "|") {
			name = strings.TrimSpace(name)
			if name == "" || strings.ContainsAny(name, " \t\r\n,") {
				return nil, fmt.Errorf("%q names no package", entry)
			}
			names = append(names, name)
		}
		out = append(out, names)
	}
	return out, nil
}

// closure solves what is wanted on an installation that has the base alone, and gives
// the packages to carry.
func (p *pinning) closure(ctx context.Context, u *packaging.Universe, want []packaging.Requirement) ([]*packaging.Package, error) {
	base, err := u.BaseClosure(ctx)
	if err != nil {
		return nil, fmt.Errorf("what every installation has: %w", err)
	}
	wanted, err := u.Solve(ctx, packaging.Request{Want: want, Installed: base})
	if err != nil {
		return nil, err
	}
	along, left := u.Carry(wanted, base)
	p.set.Base = names(left)
	return slices.Concat(wanted.Add, along), nil
}

// names gives what packages are called, sorted.
func names(packages []*packaging.Package) []string {
	var out []string
	for _, x := range packages {
		out = append(out, x.String())
	}
	slices.Sort(out)
	return out
}

// repository adds the repository's own files to the packages.
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

// once gives each text once, sorted.
func once(all []string) []string {
	set := map[string]bool{}
	for _, x := range all {
		set[x] = true
	}
	return slices.Sorted(maps.Keys(set))
}
