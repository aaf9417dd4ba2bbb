package apt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/packaging"
)

// Request selects the repositories to read.
type Request struct {
	Sources []Source
	Arch    string // dpkg's name: "amd64", "arm64"
	// Distribution and Release restrict the sources to those of a release: "debian" and
	// "12" or "bookworm". If empty, all sources are read.
	Distribution, Release string
	Keyrings              []string // folders and files; nil: SystemKeyrings
	Keys                  []string // additional armored keys
	Preferences           []Preference
	Now                   time.Time // zero for the current time
}

// Archive is the content of repositories for one architecture.
type Archive struct {
	// Universe contains, for each name, the version that apt would choose. Its packages
	// have no Record until Fill is called.
	Universe *packaging.Universe
	// Repositories are the repositories that are used, in the order of the sources.
	Repositories []Repository
	// Notes report what was skipped, and why.
	Notes []string

	records *records
}

// Repository is one repository that was read.
type Repository struct {
	Source
	Release *Release
	name    string
}

// Open reads repositories. It reports every repository that is refused; each of these
// errors wraps a *Refusal.
func Open(ctx context.Context, web packaging.Web, r Request) (*Archive, error) {
	for _, p := range r.Preferences {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	if r.Keyrings == nil {
		r.Keyrings = SystemKeyrings("/etc")
	}
	a := &Archive{}
	var err error
	if a.Repositories, err = a.releases(ctx, web, r); err != nil {
		return nil, err
	}
	if a.records, err = newRecords(); err != nil {
		return nil, err
	}
	c := &candidates{archive: a, request: r, stanzas: newStanzas(r.Arch), best: map[string]candidate{}}
	for _, repository := range a.Repositories {
		if err := c.repository(ctx, web, repository); err != nil {
			return nil, err
		}
	}
	a.Universe = c.universe()
	return a, nil
}

// Fill sets the Record of packages of this archive's universe.
func (a *Archive) Fill(packages []*packaging.Package) error { return a.records.fill(packages) }

// Address returns the URL of a package's file.
func (a *Archive) Address(p *packaging.Package) string {
	for _, r := range a.Repositories {
		if r.name == p.Repository {
			return r.Package(p.Location)
		}
	}
	return ""
}

func (a *Archive) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// mostNotes is the maximum number of unusable packages of one index that are listed.
const mostNotes = 10

// candidates selects one version for each name while packages are read.
type candidates struct {
	archive *Archive
	request Request
	stanzas *stanzas
	best    map[string]candidate
}

type candidate struct {
	stanza
	priority int
}

// repository reads all indices of a repository.
func (c *candidates) repository(ctx context.Context, web packaging.Web, r Repository) error {
	if r.flat() {
		_, err := c.index(ctx, web, r, "Packages")
		return err
	}
	for _, component := range r.Components {
		found := false
		for _, arch := range []string{c.request.Arch, "all"} {
			if arch == "all" && !r.Release.splitAll {
				continue
			}
			there, err := c.index(ctx, web, r, path.Join(component, "binary-"+arch, "Packages"))
			if err != nil {
				return err
			}
			found = found || there
		}
		if found {
			continue
		}
		missing := fmt.Sprintf("component %s for %s does not exist; it has %s for %s", component, c.request.Arch,
			strings.Join(r.Release.Components, ", "), strings.Join(r.Release.Architectures, ", "))
		if r.Given {
			return &Refusal{Repository: r.String(), Reason: ErrOtherRelease, Detail: missing}
		}
		c.archive.note("%s: %s", r, missing)
	}
	return nil
}

// index reads one index, and reports whether it exists.
func (c *candidates) index(ctx context.Context, web packaging.Web, r Repository, name string) (bool, error) {
	index, err := fetchIndex(ctx, web, r.Source, r.Release, name)
	if err != nil || index == nil {
		return false, err
	}
	defer index.Close()
	in := newParagraphs(index, most)
	for bad := 0; ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		text, line, err := in.next()
		if errors.Is(err, io.EOF) {
			if bad > mostNotes {
				c.archive.note("%s: %s: %d packages skipped in total", r, name, bad)
			}
			return true, nil
		}
		if err != nil {
			return false, &Refusal{Repository: r.String(), Reason: ErrMalformed, Detail: name + ": " + err.Error()}
		}
		p, err := c.stanzas.read(text)
		switch {
		case err != nil:
			if bad++; bad > mostNotes {
				continue
			}
			c.archive.note("%s: %s, line %d: skipped: %s", r, name, line, err)
		case p.Package != nil:
			c.offer(r, p, text)
		}
	}
}

// offer selects a package if it is preferred to the selected one of the same name.
func (c *candidates) offer(r Repository, p stanza, text []byte) {
	n := candidate{p, pin(c.request.Preferences, r.Release, p.Name, p.Version)}
	if n.priority < 0 {
		return
	}
	old, ok := c.best[p.Name]
	if ok && cmp.Or(cmp.Compare(n.priority, old.priority), Compare(n.Version, old.Version)) <= 0 {
		return
	}
	p.Repository = r.name
	if ok {
		delete(c.archive.records.at, old.Package)
	}
	c.best[p.Name] = n
	c.archive.records.keep(p.Package, text)
}

// universe returns the selected packages in apt's order of preference for packages that
// provide the same name: by Priority, then the last mentioned one first.
func (c *candidates) universe() *packaging.Universe {
	c.archive.records.close()
	all := make([]candidate, 0, len(c.best))
	for _, x := range c.best {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.named, a.named))
	})
	c.best, c.stanzas = nil, nil // they use a fifth of all memory
	packages := make([]*packaging.Package, len(all))
	for i, x := range all {
		packages[i] = x.Package
	}
	return packaging.Family{Compare: Compare, InListedOrder: true}.Universe(packages)
}
