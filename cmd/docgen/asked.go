package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed asked/*.yaml
var askedFiles embed.FS

// table is what the files of the folder asked say together: a new step may bring its own.
type table struct {
	Asked []answer `yaml:"asked"`
	// Inverses of steps that are no lists of resources, or why there is none.
	Inverses map[string]string `yaml:"inverses"`
	// Beyond are steps that no document asks for, and what for.
	Beyond map[string]string `yaml:"beyond"`
}

// answer answers names of the documents in one of four ways.
type answer struct {
	Names  map[string][]int `yaml:"names"` // and the documents that hold each
	Steps  []string         `yaml:"steps,omitempty"`
	Pieces []string         `yaml:"pieces,omitempty"` // "steps/op.Unit": what steps are made of, or what runs before them
	Waits  string           `yaml:"waits,omitempty"`  // for what is not built yet
	Left   string           `yaml:"left,omitempty"`   // the reason
	Note   string           `yaml:"note,omitempty"`
}

// readAsked joins the files of the folder asked.
func readAsked(folder fs.FS) (table, error) {
	all := table{Inverses: map[string]string{}, Beyond: map[string]string{}}
	files, err := fs.Glob(folder, "asked/*.yaml")
	if err != nil {
		return table{}, err
	}
	for _, name := range files {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return table{}, err
		}
		var t table
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
			return table{}, fmt.Errorf("%s: %w", name, err)
		}
		all.Asked = append(all.Asked, t.Asked...)
		for into, from := range map[*map[string]string]map[string]string{&all.Inverses: t.Inverses, &all.Beyond: t.Beyond} {
			for step, says := range from {
				if (*into)[step] != "" {
					return table{}, fmt.Errorf("%s: another file says something of %s already", name, step)
				}
				(*into)[step] = says
			}
		}
	}
	return all, nil
}

// problems is everything that an answer promises and the code does not hold.
func (c *catalogue) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	once := map[string]bool{}
	for _, a := range c.table.Asked {
		names := strings.Join(slices.Sorted(maps.Keys(a.Names)), ", ")
		ways := 0
		for _, has := range []bool{len(a.Steps) > 0 || len(a.Pieces) > 0, a.Waits != "", a.Left != ""} {
			if has {
				ways++
			}
		}
		if ways != 1 || len(a.Names) == 0 {
			bad("asked: %s: give steps and pieces, or what it waits for, or a reason; one of them", names)
		}
		for n := range a.Names {
			if once[n] {
				bad("asked: %s is answered twice", n)
			}
			once[n] = true
		}
		for _, s := range a.Steps {
			if c.steps[s] == nil {
				bad("asked: %s: no plan holds a step %s", names, s)
			}
		}
		for _, p := range a.Pieces {
			if !c.source.pieces[p] {
				bad("asked: %s: there is no %s", names, p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		s := c.steps[name]
		_, beyond := c.table.Beyond[name]
		switch {
		case s.does == "":
			bad("%s: the function that makes it has no comment, or its name is not written out there", name)
		case len(s.asked) == 0 && !beyond && !c.undoes[name] && !s.check:
			bad("%s: nothing in asked names it, neither as an answer, nor as an inverse, nor under beyond", name)
		case len(s.asked) > 0 && beyond:
			bad("%s: a document asks for it, so it is not beyond them", name)
		case s.inverse == "":
			bad("%s changes something, and nothing in asked names an inverse of it, or why there is none", name)
		}
	}
	for what, names := range map[string]map[string]string{"inverses": c.table.Inverses, "beyond": c.table.Beyond} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if c.steps[name] == nil {
				bad("asked: %s: no plan holds a step %s", what, name)
			}
		}
	}
	return errs
}
