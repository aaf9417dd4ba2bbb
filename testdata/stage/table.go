package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Table is the list of stages, in the order in which they run.
type Table struct {
	// Deadline is how long after the start of a run the last scenario may start.
	Deadline Seconds `yaml:"deadline"`
	Stages   []Stage `yaml:"stages"`
}

// Stage is a target of the Makefile with a budget.
type Stage struct {
	Name  string `yaml:"name"`
	Level string `yaml:"level"` // A to F, see CONTRIBUTING.md
	Make  string `yaml:"make"`  // the targets, separated by spaces
	// Warm is the budget with warm caches on two idle cores; Cold is the budget of the first
	// run on a new machine.
	Warm Seconds `yaml:"warm"`
	Cold Seconds `yaml:"cold"`
}

// Seconds is a duration in whole seconds, the unit of budgets.
type Seconds int

// Duration returns the time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// ReadTable reads a table and refuses unknown or missing fields.
func ReadTable(name string) (Table, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return Table{}, err
	}
	var t Table
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return Table{}, fmt.Errorf("%s: %w", name, err)
	}
	if t.Deadline <= 0 || len(t.Stages) == 0 {
		return Table{}, fmt.Errorf("%s: a table has a deadline and stages", name)
	}
	seen := map[string]bool{}
	for i, s := range t.Stages {
		switch {
		case s.Name == "" || s.Make == "" || s.Warm <= 0 || s.Cold < s.Warm:
			return Table{}, fmt.Errorf("%s: stage %d (%s): name, make, warm and cold are required, and cold is not below warm", name, i+1, s.Name)
		case len(s.Level) != 1 || !strings.Contains("ABCDEF", s.Level):
			return Table{}, fmt.Errorf("%s: stage %s: level %q is not one of A to F", name, s.Name, s.Level)
		case seen[s.Name]:
			return Table{}, fmt.Errorf("%s: two stages have the name %s", name, s.Name)
		}
		seen[s.Name] = true
	}
	return t, nil
}

// Only returns the stages of some levels, each given by its letter.
func (t Table) Only(levels string) (Table, error) {
	out := Table{Deadline: t.Deadline}
	for _, s := range t.Stages {
		if strings.Contains(levels, s.Level) {
			out.Stages = append(out.Stages, s)
		}
	}
	if len(out.Stages) == 0 {
		return Table{}, fmt.Errorf("no stage has a level of %q", levels)
	}
	return out, nil
}
