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
	by := providers(readers)
	asked, err := askedPaths(readers, by, o.Names)
	if err != nil {
		return err
	}
	if len(missing(asked, by)) > 0 && len(o.Names) > 0 {
		// Who has such a path asks for others in turn. filelists are read once, for all.
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

// missing gives the paths that primary has nowhere.
func missing(asked map[string]bool, by map[string][]*entry) map[string]bool {
	out := maps.Clone(asked)
	maps.DeleteFunc(out, func(path string, _ bool) bool { return len(by[path]) > 0 })
	return out
}

// askedPaths gives the paths that matter to who wants names; all where there are none.
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

// providers gives the packages by everything that they are, provide, take the place
// of, or have among primary's files.
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
