package rpm

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/packaging"
)

// files finds who has the paths that packages ask for, in primary or, where
// primary has too few, in filelists, and makes provides of them.
func (m *Metadata) files(ctx context.Context, readers []*reader, o Options) error {
	asked := map[string]bool{}
	for _, p := range o.Paths {
		asked[p] = true
	}
	provided := map[string]bool{}
	for _, r := range readers {
		for _, e := range r.entries {
			e.paths(func(path string) { asked[path] = true })
			for _, p := range e.Provides {
				if strings.HasPrefix(p.Name, "/") {
					provided[p.Name] = true
				}
			}
		}
	}
	for _, r := range readers {
		for _, e := range r.entries {
			for _, file := range e.files {
				if asked[file.path] {
					e.has(file.path)
					provided[file.path] = true
				}
			}
			e.files = nil
		}
	}
	open := maps.Clone(asked)
	maps.DeleteFunc(open, func(path string, _ bool) bool { return provided[path] })
	if len(open) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, r := range readers {
		g.Go(func() error {
			if err := r.filelists(ctx, open); err != nil {
				return fmt.Errorf("repository %s: %w", r.ID, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// filelists looks for paths among all files of a repository.
func (r *reader) filelists(ctx context.Context, looked map[string]bool) error {
	by := map[string]*entry{}
	for _, e := range r.entries {
		by[e.SHA256+e.SHA512] = e
	}
	type pair struct{ id, file string }
	var found []pair
	err := r.file(ctx, "filelists", maxFilelists, func(content io.Reader) error {
		found = nil
		return readFilelists(content, looked, func(id, file string) { found = append(found, pair{id, file}) })
	})
	if err != nil {
		return err
	}
	for _, p := range found {
		if e := by[p.id]; e != nil {
			e.has(p.file)
		}
	}
	return nil
}

// has makes a path something that the package provides.
func (e *entry) has(path string) {
	r := packaging.Relation{Name: path}
	if !slices.ContainsFunc(e.Provides, func(x packaging.Relation) bool { return x.Name == path }) {
		e.Provides = append(e.Provides, r)
	}
}

// paths tells every path that the package speaks of.
func (e *entry) paths(tell func(string)) {
	var each func(list []packaging.Relation)
	each = func(list []packaging.Relation) {
		for _, r := range list {
			if strings.HasPrefix(r.Name, "/") {
				tell(r.Name)
			}
			each(r.With)
			each(r.Without)
		}
	}
	each(e.Conflicts)
	for _, q := range e.Requires {
		each(q.Any)
		each(q.If)
	}
}
