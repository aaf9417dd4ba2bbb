package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/preflight"
)

// catalogue is all that the page tells.
type catalogue struct {
	steps  map[string]*step
	source source
	notes  notes
	undoes map[string]bool // the steps that are the inverse of another
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

// join gives each step what comments and notes say of it.
func (c *catalogue) join() {
	looks := map[string]string{}
	for _, check := range preflight.Checks() {
		looks[check.Name] = "Looks " + check.Asks + "."
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
		if t := looks[name]; t != "" {
			s.does = t
		}
		switch {
		case s.meta.LooksOnly:
			s.inverse = "looks only"
		case pairs[name] != "":
			s.inverse = pairs[name]
		default:
			s.inverse = back[name]
		}
		if strings.HasPrefix(s.does, "Is its inverse") && c.undoes[name] {
			s.does = "The inverse of " + back[name] + strings.TrimPrefix(s.does, "Is its inverse")
		}
	}
}
