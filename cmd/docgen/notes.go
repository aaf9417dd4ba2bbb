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

	"go.yaml.in/yaml/v3"
)

//go:embed notes/*.yaml
var noteFiles embed.FS

// notes are what the files of the folder notes say together: a new step may bring its own.
type notes struct {
	// Inverses of steps that are no lists of resources, or why there is none.
	Inverses map[string]string `yaml:"inverses"`
	// Why a step is there.
	Why map[string]string `yaml:"why"`
}

// readNotes joins the files of the folder notes.
func readNotes(folder fs.FS) (notes, error) {
	all := notes{Inverses: map[string]string{}, Why: map[string]string{}}
	files, err := fs.Glob(folder, "notes/*.yaml")
	if err != nil {
		return notes{}, err
	}
	for _, name := range files {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return notes{}, err
		}
		var n notes
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&n); err != nil && !errors.Is(err, io.EOF) {
			return notes{}, fmt.Errorf("%s: %w", name, err)
		}
		for into, from := range map[*map[string]string]map[string]string{&all.Inverses: n.Inverses, &all.Why: n.Why} {
			for step, says := range from {
				if (*into)[step] != "" {
					return notes{}, fmt.Errorf("%s: another file says something of %s already", name, step)
				}
				(*into)[step] = says
			}
		}
	}
	return all, nil
}

// problems are the steps that the page cannot tell of, and the notes of no step.
func (c *catalogue) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		switch s := c.steps[name]; {
		case s.does == "":
			bad("%s: the function that makes it has no comment, or its name is not written out there", name)
		case s.inverse == "":
			bad("%s changes something, and nothing in notes names an inverse of it, or why there is none", name)
		}
	}
	for what, names := range map[string]map[string]string{"inverses": c.notes.Inverses, "why": c.notes.Why} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if c.steps[name] == nil {
				bad("notes: %s: no plan holds a step %s", what, name)
			}
		}
	}
	return errs
}
