package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/preflight"
)

// catalogue is the content of the page.
type catalogue struct {
	steps  map[string]*step
	source source
	notes  notes
	undoes map[string]bool // steps that undo another
}

func load(root string) (*catalogue, error) {
	found, err := planned(filepath.Join(root, "testdata", "clusters"))
	if err != nil {
		return nil, err
	}
	src, err := read(filepath.Join(root, "steps"))
	if err != nil {
		return nil, err
	}
	n, err := readNotes(noteFiles)
	if err != nil {
		return nil, err
	}
	c := &catalogue{steps: found, source: src, notes: n}
	c.join()
	return c, nil
}

// join adds comments and notes to each step.
func (c *catalogue) join() {
	checks := map[string]string{}
	for _, check := range preflight.Checks() {
		checks[check.Name] = "Checks " + check.Question + "."
	}
	pairs := c.source.inverses()
	maps.Copy(pairs, c.notes.Inverses)
	c.undoes = map[string]bool{}
	back := map[string]string{}
	for _, want := range slices.Sorted(maps.Keys(pairs)) {
		if gone := pairs[want]; c.steps[gone] != nil && back[gone] == "" {
			back[gone], c.undoes[gone] = want, true
		}
	}
	for name, s := range c.steps {
		s.does = c.source.does[name]
		if t := checks[name]; t != "" {
			s.does = t
		}
		switch {
		case s.meta.ReadOnly:
			s.inverse = "none: read-only"
		case pairs[name] != "":
			s.inverse = pairs[name]
		default:
			s.inverse = back[name]
		}
		if strings.HasPrefix(s.does, "Is its inverse") && c.undoes[name] {
			s.does = "Undoes " + back[name] + strings.TrimPrefix(s.does, "Is its inverse")
		}
	}
}
