package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/apt"
)

// deb pins packages of Debian and its derivatives. Repositories without a valid
// signature are refused, so the digests are always signed.
func (p *pinning) deb(ctx context.Context) error {
	sources, err := p.debSources()
	if err != nil {
		return err
	}
	r := apt.Request{
		Sources: sources, Arch: apt.Arch(p.artifact.Platform.Arch), Now: p.now, Keyrings: apt.SystemKeyrings(p.etc),
		Distribution: p.artifact.Platform.Distribution, Release: p.artifact.Platform.Release,
	}
	for _, name := range p.set.Keys {
		key, err := os.ReadFile(p.path(name))
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		r.Keys = append(r.Keys, string(key))
	}
	archive, err := apt.Open(ctx, p.web, r)
	var none *apt.NoneError
	if errors.As(err, &none) && len(p.set.Sources) == 0 {
		return fmt.Errorf("%w; %s", err, p.advice())
	}
	if err != nil {
		return err
	}
	for _, n := range archive.Notes {
		p.note("%s", n)
	}
	wants, err := p.wants()
	if err != nil {
		return err
	}
	var want []packaging.Requirement
	for _, any := range wants {
		q := packaging.Requirement{}
		for _, name := range any {
			q.Any = append(q.Any, packaging.Relation{Name: name})
		}
		want = append(want, q)
	}
	packages, err := p.closure(ctx, archive.Universe, want)
	if err != nil {
		return err
	}
	if p.artifact.Members, err = archive.Members(packages); err != nil {
		return err
	}
	p.set.Date = time.Time{}
	p.set.Repositories = nil
	for _, x := range archive.Repositories {
		if x.Release.Date.After(p.set.Date) {
			p.set.Date = x.Release.Date
		}
		p.set.Repositories = append(p.set.Repositories, strings.Join(append([]string{packaging.Public(x.URI), x.Suite}, x.Components...), " "))
	}
	p.dated(p.set.Date)
	p.set.Repositories = once(p.set.Repositories)
	p.artifact.Trust = manifest.FromPublished
	return nil
}

// dated sets the date of the written repository; the current time if at is zero.
func (p *pinning) dated(at time.Time) {
	if at.IsZero() {
		at = p.now
	}
	p.set.Date = at.UTC().Truncate(time.Second)
}

// path resolves a path of the config.
func (p *pinning) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.base, name)
}

func (p *pinning) advice() string {
	return "list its repositories in spec.bundle.operatingSystems.repositories"
}

// debSources reads the sources of the config, or else those of this machine.
func (p *pinning) debSources() ([]apt.Source, error) {
	if len(p.set.Sources) == 0 {
		dir := filepath.Join(p.etc, "apt")
		sources, problems := apt.ReadFolder(dir)
		if err := p.heed(problems); err != nil {
			return nil, err
		}
		if len(sources) == 0 {
			system := p.artifact.Platform
			return nil, fmt.Errorf("no repository of %s %s (%s) is configured on this machine: %s contains no source; %s", system.Distribution, system.Release, apt.Arch(system.Arch), dir, p.advice())
		}
		return sources, nil
	}
	var all []apt.Source
	var problems manifest.Problems
	for i, entry := range p.set.Sources {
		found, wrong := p.debSource(entry)
		if len(found) == 0 && wrong.Err() == nil {
			wrong = append(wrong, manifest.Problem{Message: "it contains no package source", Advice: "write one as deb URI SUITE COMPONENT…"})
		}
		wrong = wrong.In(fmt.Sprintf("repositories[%d]", i))
		all, problems = append(all, found...), append(problems, wrong...)
	}
	all, problems = apt.Unique(all, problems)
	for i := range all {
		all[i].Given = true
	}
	return all, p.heed(problems)
}

// debSource reads one source of the config: a line, a file, or a folder.
func (p *pinning) debSource(entry string) ([]apt.Source, manifest.Problems) {
	if strings.HasPrefix(entry, "deb ") {
		return apt.ParseList("", entry, p.base)
	}
	at := p.path(entry)
	switch {
	case strings.HasSuffix(entry, "/"):
		if _, err := os.Stat(at); err != nil {
			return nil, manifest.Problems{{File: entry, Message: err.Error()}}
		}
		found, problems := apt.ReadParts(at, p.base)
		more, wrong := apt.ReadParts(filepath.Join(at, "sources.list.d"), p.base)
		return append(found, more...), append(problems, wrong...)
	case filepath.Ext(entry) == ".repo":
		return nil, manifest.Problems{{File: entry, Message: "a .repo file is for rpm packages", Advice: "specify a .list or .sources file, or a line of sources.list"}}
	}
	return apt.ReadFile(at, p.base)
}
