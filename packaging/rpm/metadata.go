package rpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/packaging"
)

// The maximum sizes of metadata in bytes: in the largest distributions, primary has
// 250 MB and filelists 1 GB.
const (
	maxRepomd    = 16 << 20
	maxPrimary   = 1 << 30
	maxFilelists = 4 << 30
	maxModules   = 256 << 20
)

// Options are the options of Read.
type Options struct {
	Arch string // rpm's name: "x86_64"; noarch is always included
	// Names are the packages that will be requested, as in Metadata.Want. Files are then
	// only searched for dependencies of these, of base packages, and of their possible
	// dependencies; for this, filelists are rarely needed. Without names, the files that
	// any package requires are searched.
	Names []string
	Now   time.Time // time at which signatures must be valid
}

// Metadata is the content of repositories for one architecture.
type Metadata struct {
	repositories []Repository
	readers      []*reader  // by repository
	entries      [][]*entry // by repository
	modules      map[string]string
	// Notes report what was skipped, and what is not signed.
	Notes []string
}

// Read reads the metadata of repositories. It returns an error with the name of the file
// if a signature or checksum is wrong.
func Read(ctx context.Context, web packaging.Web, repositories []Repository, o Options) (*Metadata, error) {
	readers := make([]*reader, len(repositories))
	m := &Metadata{repositories: repositories, readers: readers, entries: make([][]*entry, len(repositories)), modules: map[string]string{}}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, r := range repositories {
		readers[i] = &reader{Repository: r, place: place{web, r.Bases}, options: o}
		g.Go(func() error {
			if err := readers[i].primary(inner); err != nil {
				return fmt.Errorf("repository %s: %w", r.ID, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := m.files(ctx, readers, o); err != nil {
		return nil, err
	}
	for i, r := range readers {
		m.entries[i] = r.entries
		m.Notes = append(m.Notes, r.notes...)
		for artifact, module := range r.modules {
			m.modules[artifact] = module
		}
	}
	return m, nil
}

// reader reads one repository.
type reader struct {
	Repository
	place   place
	options Options

	listed  map[string]file
	base    string // URL that its metadata was read from
	keys    Keys
	signed  bool // one of the keys signed its metadata
	entries []*entry
	modules map[string]string
	notes   []string
}

func (r *reader) note(format string, args ...any) {
	r.notes = append(r.notes, "repository "+r.ID+": "+fmt.Sprintf(format, args...))
}

// primary reads repomd.xml and the files that it lists, except filelists.
func (r *reader) primary(ctx context.Context) error {
	if err := r.repomd(ctx); err != nil {
		return err
	}
	err := r.file(ctx, "primary", maxPrimary, func(content io.Reader) (err error) {
		r.entries, err = readPrimary(content, r.wants)
		return err
	})
	if err != nil {
		return err
	}
	r.entries = slices.DeleteFunc(r.entries, func(e *entry) bool {
		if len(e.odd) > 0 {
			r.note("%s is skipped: %s", e, e.odd[0])
		}
		return len(e.odd) > 0
	})
	for _, e := range r.entries {
		e.Repository = r.ID
	}
	return r.file(ctx, "modules", maxModules, func(content io.Reader) (err error) {
		r.modules, err = readModules(content)
		return err
	})
}

// wants reports whether a package is for this architecture and not excluded.
func (r *reader) wants(name, arch string) bool {
	if arch != "noarch" && arch != r.options.Arch {
		return false
	}
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			byName, _ := path.Match(p, name)
			byArch, _ := path.Match(p, name+"."+arch)
			return byName || byArch
		})
	}
	return !in(r.Exclude) && (len(r.Include) == 0 || in(r.Include))
}

// file reads one of the files of repomd.xml, if it is listed.
func (r *reader) file(ctx context.Context, kind string, limit int64, f func(io.Reader) error) error {
	x, ok := r.listed[kind]
	if !ok {
		return nil
	}
	return r.place.read(ctx, x.Location, func(content io.Reader) error { return x.read(content, limit, f) })
}

// repomd reads repomd.xml. With a key it verifies the signature, if it exists or is
// required.
func (r *reader) repomd(ctx context.Context) error {
	keys, err := LoadKeys(ctx, r.place.Web, r.Repository)
	if err != nil {
		return err
	}
	r.keys = keys
	// The signature must be from the same mirror, because one mirror may be older than
	// another.
	var errs []error
	for _, base := range r.place.bases {
		err := r.repomdOf(ctx, place{r.place.Web, []string{base}}, keys)
		if err == nil {
			r.base = base
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *reader) repomdOf(ctx context.Context, p place, keys Keys) error {
	const name = "repodata/repomd.xml"
	var content, signature []byte
	if err := p.read(ctx, name, all(&content, maxRepomd)); err != nil {
		return err
	}
	if !keys.Empty() {
		err := p.read(ctx, name+".asc", all(&signature, maxRepomd))
		switch {
		case err == nil:
			if err := keys.verify(content, signature, r.options.Now); err != nil {
				return fmt.Errorf("%s: signature: %w", name, err)
			}
		case r.SignedMetadata || !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("signature of %s: %w", name, err)
		}
	}
	listed, err := readRepomd(content)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if signature == nil && !r.SignedPackages {
		r.note("neither its metadata nor its packages must be signed: only the connection to it is trusted")
	}
	r.listed, r.signed = listed, signature != nil
	return nil
}
