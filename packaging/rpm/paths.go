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

// files finds the packages that contain required paths, in primary or else in filelists,
// and adds the paths to what they provide.
func (m *Metadata) files(ctx context.Context, readers []*reader, o Options) error {
	by := providers(readers)
	asked, err := askedPaths(readers, by, o.Names)
	if err != nil {
		return err
	}
	if len(missing(asked, by)) > 0 && len(o.Names) > 0 {
		// These packages may require further paths. filelists are read once for all of them.
		every, err := askedPaths(readers, by, nil)
		if err != nil {
			return err
		}
		maps.Copy(asked, every)
	}
	looked := missing(asked, by)
	for _, r := range readers {
		for _, e := range r.entries {
			for _, file := range e.files {
				if asked[file.path] {
					e.has(file.path)
				}
			}
			e.files = nil
		}
	}
	if len(looked) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, r := range readers {
		g.Go(func() error {
			if err := r.filelists(ctx, looked); err != nil {
				return fmt.Errorf("repository %s: %w", r.ID, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// missing returns the paths that are not in primary.
func missing(asked map[string]bool, by map[string][]*entry) map[string]bool {
	out := maps.Clone(asked)
	maps.DeleteFunc(out, func(path string, _ bool) bool { return len(by[path]) > 0 })
	return out
}

// askedPaths returns the paths that names may require; all paths without names.
func askedPaths(readers []*reader, by map[string][]*entry, names []string) (map[string]bool, error) {
	asked := map[string]bool{}
	ask := func(path string) { asked[path] = true }
	if len(names) == 0 {
		for _, r := range readers {
			for _, e := range r.entries {
				e.paths(ask)
			}
		}
		return asked, nil
	}
	base, err := readBase()
	if err != nil {
		return nil, err
	}
	open := slices.Clone(names)
	for _, line := range base {
		open = append(open, line.Any...)
	}
	seen := map[string]bool{}
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		if strings.HasPrefix(name, "/") {
			ask(name)
		}
		for _, e := range by[name] {
			e.paths(ask)
			for _, q := range e.Requires {
				for _, r := range q.Any {
					open = append(open, r.Name)
				}
			}
		}
	}
	return asked, nil
}

// providers returns the packages by their names, by the names that they provide or
// obsolete, and by their files in primary.
func providers(readers []*reader) map[string][]*entry {
	by := map[string][]*entry{}
	for _, r := range readers {
		for _, e := range r.entries {
			by[e.Name] = append(by[e.Name], e)
			for _, list := range [][]packaging.Relation{e.Provides, e.Obsoletes} {
				for _, p := range list {
					by[p.Name] = append(by[p.Name], e)
				}
			}
			for _, f := range e.files {
				by[f.path] = append(by[f.path], e)
			}
		}
	}
	return by
}

// filelists searches paths among all files of a repository.
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

// has adds a path to what the package provides.
func (e *entry) has(path string) {
	r := packaging.Relation{Name: path}
	if !slices.ContainsFunc(e.Provides, func(x packaging.Relation) bool { return x.Name == path }) {
		e.Provides = append(e.Provides, r)
	}
}

// paths calls a function for every path in the package's relations.
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
