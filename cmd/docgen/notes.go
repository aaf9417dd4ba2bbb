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

// notes is the joined content of the files in the folder notes.
type notes struct {
	// Inverses maps steps that are not lists of resources to their undo step, or to the
	// reason why they have none.
	Inverses map[string]string `yaml:"inverses"`
	// Why maps steps to the reason why they exist.
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
			for step, text := range from {
				if (*into)[step] != "" {
					return notes{}, fmt.Errorf("%s: %s already has an entry in another file", name, step)
				}
				(*into)[step] = text
			}
		}
	}
	return all, nil
}

// problems returns an error for each step that cannot be documented, and for each note
// without a step.
func (c *catalogue) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(c.steps)) {
		switch s := c.steps[name]; {
		case s.does == "":
			bad("%s: the function that returns it has no comment, or does not contain the step's name as a literal", name)
		case s.inverse == "":
			bad("%s: add its undo step to the inverses in notes, or the reason why it has none", name)
		}
	}
	for what, names := range map[string]map[string]string{"inverses": c.notes.Inverses, "why": c.notes.Why} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if c.steps[name] == nil {
				bad("notes: %s: no plan contains the step %s", what, name)
			}
		}
	}
	return errs
}
