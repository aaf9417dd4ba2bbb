package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

// rpm pins packages of Red Hat Enterprise Linux and similar distributions.
func (p *pinning) rpm(ctx context.Context) error {
	repositories, err := p.rpmRepositories()
	if err != nil {
		return err
	}
	wants, err := p.wants()
	if err != nil {
		return err
	}
	o := rpm.Options{Arch: rpm.Arch(p.artifact.Platform.Arch), Now: p.now}
	for _, any := range wants {
		o.Names = append(o.Names, any...)
	}
	metadata, err := rpm.Read(ctx, p.web, repositories, o)
	if err != nil {
		return err
	}
	u, passed, err := metadata.Universe()
	if err != nil {
		return err
	}
	for _, n := range append(metadata.Notes, passed...) {
		p.note("%s", n)
	}
	var want []packaging.Requirement
	for _, any := range wants {
		q := packaging.Requirement{}
		for _, x := range metadata.Want(any...) {
			q.Any = append(q.Any, x.Any...)
		}
		want = append(want, q)
	}
	packages, err := p.closure(ctx, u, want)
	if err != nil {
		return err
	}
	if err := p.verify(ctx, metadata, packages); err != nil {
		return err
	}
	if p.artifact.Members, err = metadata.Members(packages); err != nil {
		return err
	}
	p.set.Repositories = nil
	for _, r := range repositories {
		p.set.Repositories = append(p.set.Repositories, r.ID+" "+metadata.Base(r.ID))
	}
	p.set.Repositories = once(p.set.Repositories)
	p.dated(metadata.Date())
	return nil
}

// rpmRepositories reads the repositories of the config, or else those of this machine.
func (p *pinning) rpmRepositories() ([]rpm.Repository, error) {
	system := p.artifact.Platform
	vars, err := p.variables(system.Release)
	if err != nil {
		return nil, err
	}
	o := rpm.FileOptions{Vars: vars, Base: p.base}
	for _, key := range p.set.Keys {
		o.Keys = append(o.Keys, rpm.FileAddress(p.path(key)))
	}
	if len(p.set.Sources) == 0 {
		return p.ownRepositories(o)
	}
	var all []rpm.Repository
	var problems manifest.Problems
	for i, entry := range p.set.Sources {
		found, wrong := p.rpmSource(entry, o)
		if len(found) == 0 && wrong.Err() == nil {
			wrong = append(wrong, manifest.Problem{Message: "it contains no enabled repository", Advice: "specify a .repo file, or a folder of .repo files"})
		}
		all, problems = append(all, found...), append(problems, wrong.In(fmt.Sprintf("repositories[%d]", i))...)
	}
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.ID] {
			problems = append(problems, manifest.Problem{Path: r.ID, Message: "the repository is configured twice", Advice: "disable one of them with enabled=0"})
		}
		seen[r.ID] = true
	}
	return all, p.heed(problems)
}

// variables returns the variables of .repo files for a release, with those that this
// machine adds.
func (p *pinning) variables(release string) (rpm.Variables, error) {
	return rpm.NewVariables(release, rpm.Arch(p.artifact.Platform.Arch), filepath.Join(p.etc, "yum/vars"), filepath.Join(p.etc, "dnf/vars"))
}

func (p *pinning) rpmSource(entry string, o rpm.FileOptions) ([]rpm.Repository, manifest.Problems) {
	at := p.path(entry)
	switch {
	case strings.HasSuffix(entry, "/"):
		if _, err := os.Stat(at); err != nil {
			return nil, manifest.Problems{{File: entry, Message: err.Error()}}
		}
		return rpm.ReadRepositories(at, o)
	case filepath.Ext(entry) != ".repo":
		return nil, manifest.Problems{{Message: "it configures apt, for deb packages", Advice: "specify a .repo file, or a folder of .repo files"}}
	}
	content, err := os.ReadFile(at)
	if err != nil {
		return nil, manifest.Problems{{File: entry, Message: err.Error()}}
	}
	return rpm.ParseRepositories(entry, content, o)
}

// ownRepositories reads the repositories of this machine that are for the requested
// distribution and release. Unlike apt's, a yum repository does not state this. It is
// assumed if this machine has that distribution and release, or if it has that
// distribution and the repository's address contains $releasever.
func (p *pinning) ownRepositories(o rpm.FileOptions) ([]rpm.Repository, error) {
	system := p.artifact.Platform
	dir := filepath.Join(p.etc, "yum.repos.d")
	distribution, release, err := osRelease(p.etc)
	if err != nil {
		return nil, err
	}
	none := func(why string) error {
		return fmt.Errorf("no repository of %s %s (%s) is configured on this machine: %s; %s", system.Distribution, system.Release, rpm.Arch(system.Arch), why, p.advice())
	}
	if distribution != system.Distribution {
		return nil, none("this machine runs " + strings.TrimSpace(distribution+" "+release))
	}
	all, problems := rpm.ReadRepositories(dir, o)
	if err := p.heed(problems); err != nil {
		return nil, err
	}
	if major(release) != major(system.Release) {
		if all, err = p.following(all, dir, o, distribution+" "+release); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, none(dir + " contains none for it")
	}
	return all, nil
}

// following returns the repositories of a folder whose address depends on the release.
func (p *pinning) following(all []rpm.Repository, dir string, o rpm.FileOptions, own string) (out []rpm.Repository, err error) {
	if o.Vars, err = p.variables("0"); err != nil {
		return nil, err
	}
	fixed := map[string]bool{}
	others, _ := rpm.ReadRepositories(dir, o) // the same problems as in the first reading
	for _, r := range others {
		fixed[r.ID+" "+strings.Join(r.Bases, " ")] = true
	}
	for _, r := range all {
		if fixed[r.ID+" "+strings.Join(r.Bases, " ")] {
			p.note("repository %s: skipped: its address is for %s", r.ID, own)
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

func major(release string) string {
	m, _, _ := strings.Cut(release, ".")
	return m
}

// osRelease returns ID and VERSION_ID of this machine's os-release.
func osRelease(etc string) (id, version string, err error) {
	text, err := os.ReadFile(filepath.Join(etc, "os-release"))
	if errors.Is(err, os.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch value = strings.Trim(value, `"'`); key {
		case "ID":
			id = value
		case "VERSION_ID":
			version = value
		}
	}
	return id, version, nil
}
