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

// Package is one operating system package of a host, in any state.
type Package struct {
	ID      string // for the host's package tools: "socat", "libc6:i386", "socat.x86_64"
	Name    string
	Version string
	Arch    string // as the distribution names it: amd64, all, x86_64, noarch
	// State is a state of dpkg: installed, half-configured and so on; config-files if the
	// package was removed and its configuration files remain.
	State string
}

// The states of packages that kubexm distinguishes.
const (
	StateInstalled = "installed"
	StateConfig    = "config-files"
)

// Packages are the packages of a host.
type Packages struct {
	Format   string
	Native   string // the native architecture, if the format is manifest.Deb
	All      []Package
	Provided []string // the queried names that installed packages provide
	// Problems lists problems of the package database. It is empty while Busy is set.
	Problems []string
	Busy     string // the process that is changing packages: "apt-get (process 712)"
}

// Find returns the package with that ID.
func (p Packages) Find(id string) (Package, bool) {
	i := slices.IndexFunc(p.All, func(x Package) bool { return x.ID == id })
	if i < 0 {
		return Package{}, false
	}
	return p.All[i], true
}

// Has reports whether a package of that name is installed for the native architecture, or
// a package that provides it.
func (p Packages) Has(name string) bool {
	return slices.Contains(p.Provided, name) || slices.ContainsFunc(p.All, func(x Package) bool {
		return x.Name == name && x.State == StateInstalled && (p.Format != manifest.Deb || x.ID == x.Name)
	})
}

// maxPackages is the maximum size of the list of packages, in bytes.
const maxPackages = 16 << 20

// Packages returns the packages of the host, of format manifest.Deb or manifest.RPM, and
// which of names installed packages provide.
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

// parsePackages parses the output of scriptPackages.
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
			p.Problems = append(p.Problems, f[1])
		case f[0] == "busy" && len(f) == 2:
			p.Busy = f[1]
		case f[0] == "is" && len(f) == 6:
			x := Package{State: f[1], ID: f[2], Name: f[3], Version: f[4], Arch: f[5]}
			if p.Native != "" {
				x.ID = strings.TrimSuffix(x.ID, ":"+p.Native)
			}
			if x.State != "not-installed" && x.Name != "gpg-pubkey" { // rpm lists keys as packages
				p.All = append(p.All, x)
			}
		default:
			return Packages{}, fmt.Errorf("unexpected line %q in the list of packages", line)
		}
	}
	slices.SortFunc(p.All, func(a, b Package) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version)) })
	return p, nil
}

// packageName matches names and IDs of packages. None begins with a dash, since they are
// passed as arguments.
var packageName = regexp.MustCompile(`^[A-Za-z0-9/_(][A-Za-z0-9+._:/()~^=-]{0,254}$`)

func checkPackages(format string, names []string) error {
	if format != manifest.Deb && format != manifest.RPM {
		return fmt.Errorf("%q is not a package format", format)
	}
	for _, n := range names {
		if !packageName.MatchString(n) {
			return fmt.Errorf("%q is not a valid package name", n)
		}
	}
	return nil
}

// FreePackages returns which of ids can be removed together, and which must be kept because
// other packages depend on them. Both are sorted. It changes nothing.
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
			return nil, nil, fmt.Errorf("queried %d packages, the host printed %q", len(ids), line)
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
