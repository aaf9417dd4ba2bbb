package conntest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// pack is a package of the operating system.
type pack struct {
	version, arch, state         string
	depends, conflicts, provides []string
	fails                        bool   // while it is configured
	service                      bool   // has a unit of its name, which starts when the package comes
	at, sum                      string // of one in a repository
}

const (
	packInstalled = "installed"
	packConfig    = "config-files"
)

// is reports whether p, called name, answers to what something needs.
func (p pack) is(name, need string) bool {
	return p.state != packConfig && (name == need || slices.Contains(p.provides, need))
}

// AddPackage adds an installed package of the distribution with its dependencies.
func (s *Sim) AddPackage(name, version string, depends ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packages[name] = pack{version: version, arch: s.anyArch(), state: packInstalled, depends: depends}
}

// SetPackage sets the installed version of a package. An empty version removes it.
func (s *Sim) SetPackage(name, version string) {
	if s.AddPackage(name, version); version == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.packages, name)
	}
}

// SetPackageState sets the dpkg state of a package: half-configured, config-files.
func (s *Sim) SetPackageState(name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.packages[name]
	p.state = state
	s.packages[name] = p
}

// PackageVersion returns the installed version of a package, or "".
func (s *Sim) PackageVersion(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.packages[name]; p.state == packInstalled {
		return p.version
	}
	return ""
}

// LockPackages makes another process hold the package lock. It releases the lock the given
// number of seconds after something begins to wait for it.
func (s *Sim) LockPackages(who string, seconds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locker, s.locked = who, seconds
}

func (s *Sim) rpm() bool { return s.machine.Packages == "dnf" || s.machine.Packages == "yum" }

func (s *Sim) anyArch() string {
	if s.rpm() {
		return "noarch"
	}
	return "all"
}

func (s *Sim) packageID(name string) string {
	if s.rpm() {
		return name + "." + s.packages[name].arch
	}
	return name
}

// named gives the name of a package by its ID.
func (s *Sim) named(id string) (string, bool) {
	for name := range s.packages {
		if s.packageID(name) == id {
			return name, true
		}
	}
	return "", false
}

// doPackage knows the verbs about packages.
func (s *Sim) doPackage(c connector.Cmd, _ []byte) (connector.Result, bool) {
	if !strings.HasPrefix(c.Verb, "pkg.") {
		return connector.Result{}, false
	}
	args := c.Args()
	if s.rpm() != (args[0] == "rpm") {
		return exits(127, "sh: 1: no tool for packages of format %s", args[0])
	}
	switch c.Verb {
	case connector.VerbPackages:
		return connector.Result{Stdout: []byte(s.listPackages(args[1:]))}, true
	case connector.VerbPackagesFree:
		return s.freePackages(args[1:])
	case connector.VerbPackagesInstall:
		res, _ := s.installPackages(args[2], args[3], args[4], args[5:])
		s.purge(args[1])
		return res, true
	case connector.VerbPackagesRemove:
		return s.removePackages(args[1], args[2], args[3:])
	}
	return connector.Result{}, false
}

func (s *Sim) listPackages(asked []string) string {
	var b strings.Builder
	if !s.rpm() {
		b.WriteString("native\tamd64\n")
	}
	if s.locked > 0 {
		fmt.Fprintf(&b, "busy\t%s\n", s.locker)
	}
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		p := s.packages[name]
		fmt.Fprintf(&b, "is\t%s\t%s\t%s\t%s\t%s\n", p.state, s.packageID(name), name, p.version, p.arch)
		if s.locked == 0 && p.state != packInstalled && p.state != packConfig {
			fmt.Fprintf(&b, "trouble\t%s is %s\n", name, p.state)
		}
	}
	for _, n := range asked {
		for name, p := range s.packages {
			if p.state == packInstalled && slices.Contains(p.provides, n) || s.rpm() && name == n {
				fmt.Fprintf(&b, "provided\t%s\n", n)
			}
		}
	}
	return b.String()
}

// needer gives the name of an installed package, none of gone, that needs name.
func (s *Sim) needer(name string, gone []string) string {
	for _, other := range slices.Sorted(maps.Keys(s.packages)) {
		p := s.packages[other]
		if slices.Contains(gone, other) || p.state == packConfig {
			continue
		}
		for _, need := range p.depends {
			if s.packages[name].is(name, need) && !s.provided(need, gone) {
				return other
			}
		}
	}
	return ""
}

// provided reports whether something else than gone answers to a need.
func (s *Sim) provided(need string, gone []string) bool {
	for name, p := range s.packages {
		if !slices.Contains(gone, name) && p.is(name, need) {
			return true
		}
	}
	return false
}

func (s *Sim) freePackages(ids []string) (connector.Result, bool) {
	var gone []string
	for _, id := range ids {
		name, ok := s.named(id)
		if !ok {
			return exits(1, "package %s is not installed", id)
		}
		gone = append(gone, name)
	}
	var out strings.Builder
	for again := true; again; {
		again = false
		for _, name := range gone {
			if s.needer(name, gone) != "" {
				fmt.Fprintf(&out, "kept\t%s\n", s.packageID(name))
				gone = slices.DeleteFunc(gone, func(n string) bool { return n == name })
				again = true
				break
			}
		}
	}
	return says("%s", out.String())
}

func (s *Sim) removePackages(wait, n string, ids []string) (connector.Result, bool) {
	if res, ok := s.waitPackages(wait); !ok {
		return res, true
	}
	purge, _ := strconv.Atoi(n)
	var gone []string
	for _, id := range ids {
		if name, ok := s.named(id); ok {
			gone = append(gone, name)
		}
	}
	for i, name := range gone {
		if by := s.needer(name, gone); by != "" {
			return exits(1, "dpkg: dependency problems prevent removal of %s:\n %s depends on %s.", name, by, name)
		}
		if p := s.packages[name]; i >= purge && !s.rpm() {
			p.state = packConfig
			s.packages[name] = p
			continue
		}
		if s.packages[name].service {
			s.dropService(name)
		}
		delete(s.packages, name)
	}
	return says("Removing %s ...\n", strings.Join(gone, ", "))
}

// waitPackages waits for the lock: it is free afterwards, or the time was over.
func (s *Sim) waitPackages(wait string) (connector.Result, bool) {
	seconds, _ := strconv.Atoi(wait)
	if s.locked > seconds {
		res, _ := exits(75, "%s has the packages locked since more than %s seconds", s.locker, wait)
		return res, false
	}
	s.locked = 0
	return connector.Result{}, true
}
