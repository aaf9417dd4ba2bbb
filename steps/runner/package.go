package runner

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// Package is one package of the operating system that a host has, in whatever state.
type Package struct {
	ID      string // as the host's own tools take it: "socat", "libc6:i386", "socat.x86_64"
	Name    string
	Version string
	Arch    string // in the system's own words: amd64, all, x86_64, noarch
	// State is dpkg's word for it: installed, or half-configured and the like;
	// config-files where the package was removed and its configuration stays.
	State string
}

// The states of packages that mean something here.
const (
	StateInstalled = "installed"
	StateConfig    = "config-files"
)

// Packages is what a host has of packages.
type Packages struct {
	Format   string
	Native   string // architecture, where the format is manifest.Deb
	All      []Package
	Provided []string // of the names that were asked for, those that something installed provides
	// Trouble says in which way they are broken; nothing while Busy.
	Trouble []string
	Busy    string // who changes packages at the moment: "apt-get (process 712)"
}

// Find gives a package by its ID.
func (p Packages) Find(id string) (Package, bool) {
	i := slices.IndexFunc(p.All, func(x Package) bool { return x.ID == id })
	if i < 0 {
		return Package{}, false
	}
	return p.All[i], true
}

// Has tells whether a package of that name is installed for the host's own
// architecture, or something that provides it.
func (p Packages) Has(name string) bool {
	return slices.Contains(p.Provided, name) || slices.ContainsFunc(p.All, func(x Package) bool {
		return x.Name == name && x.State == StateInstalled && (p.Format != manifest.Deb || x.ID == x.Name)
	})
}

// maxPackages is how much the list of packages may be, in bytes.
const maxPackages = 16 << 20

// Packages gives what the host has of packages of a format (manifest.Deb or
// manifest.RPM), and which of names something provides.
func (r *Runner) Packages(ctx context.Context, format string, names ...string) (Packages, error) {
	if err := checkPackages(format, names); err != nil {
		return Packages{}, err
	}
	res, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbPackages, Argv: shell(scriptPackages, append([]string{format}, names...)...), Sudo: true, Limit: maxPackages,
	})
	if err != nil {
		return Packages{}, err
	}
	return parsePackages(format, res.Stdout)
}

// parsePackages reads the lines of scriptPackages.
func parsePackages(format string, out []byte) (Packages, error) {
	p := Packages{Format: format}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case f[0] == "native" && len(f) == 2:
			p.Native = f[1]
		case f[0] == "provided" && len(f) == 2:
			p.Provided = append(p.Provided, f[1])
		case f[0] == "trouble" && len(f) == 2:
			p.Trouble = append(p.Trouble, f[1])
		case f[0] == "busy" && len(f) == 2:
			p.Busy = f[1]
		case f[0] == "is" && len(f) == 6:
			x := Package{State: f[1], ID: f[2], Name: f[3], Version: f[4], Arch: f[5]}
			if p.Native != "" {
				x.ID = strings.TrimSuffix(x.ID, ":"+p.Native)
			}
			if x.State != "not-installed" && x.Name != "gpg-pubkey" { // rpm keeps keys as packages
				p.All = append(p.All, x)
			}
		default:
			return Packages{}, fmt.Errorf("the list of packages holds %q", line)
		}
	}
	slices.SortFunc(p.All, func(a, b Package) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version)) })
	return p, nil
}

// Names and IDs of packages, as arguments: none begins with a dash.
var packageName = regexp.MustCompile(`^[A-Za-z0-9/_(][A-Za-z0-9+._:/()~^=-]{0,254}$`)

func checkPackages(format string, names []string) error {
	if format != manifest.Deb && format != manifest.RPM {
		return fmt.Errorf("%q is no format of packages", format)
	}
	for _, n := range names {
		if !packageName.MatchString(n) {
			return fmt.Errorf("%q is no name of a package", n)
		}
	}
	return nil
}

// FreePackages gives those of ids that can go together without anything else,
// and those that have to stay because something else needs them, each sorted. It
// changes nothing.
func (r *Runner) FreePackages(ctx context.Context, format string, ids []string) (free, kept []string, err error) {
	if err := checkPackages(format, ids); err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	res, err := r.script(ctx, connector.VerbPackagesFree, scriptPackagesFree, nil, append([]string{format}, ids...)...)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(res.Stdout)) {
		id, ok := strings.CutPrefix(strings.TrimSpace(line), "kept\t")
		if !ok || !slices.Contains(ids, id) {
			return nil, nil, fmt.Errorf("asked for %d packages, the host says %q", len(ids), line)
		}
		kept = append(kept, id)
	}
	for _, id := range ids {
		if !slices.Contains(kept, id) {
			free = append(free, id)
		}
	}
	slices.Sort(kept)
	slices.Sort(free)
	return free, kept, nil
}
