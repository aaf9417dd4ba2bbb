package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// part is a command that passes or fails.
type part struct {
	Name    string `yaml:"name"`
	Run     string `yaml:"run"`     // for bash
	Minutes int    `yaml:"minutes"` // estimate
}

// readParts returns the parts of the checkout at root, including each scenario.
func readParts(root string) ([]part, error) {
	var all struct {
		Parts []part `yaml:"parts"`
	}
	if err := read(filepath.Join(root, "testdata/testall/parts.yaml"), &all); err != nil {
		return nil, err
	}
	var lab struct {
		Scenarios []part `yaml:"scenarios"` // with more fields
	}
	if err := read(filepath.Join(root, "testdata/e2e/scenarios.yaml"), &lab); err != nil {
		return nil, err
	}
	for _, s := range lab.Scenarios {
		all.Parts = append(all.Parts, part{Name: "scenario-" + s.Name, Run: "make shown SCENARIO=" + s.Name, Minutes: s.Minutes})
	}
	seen := map[string]bool{}
	for _, p := range all.Parts {
		if p.Name == "" || p.Run == "" || p.Minutes <= 0 || seen[p.Name] {
			return nil, fmt.Errorf("part %q: it is duplicated, or lacks its name, command or minutes", p.Name)
		}
		seen[p.Name] = true
	}
	return all.Parts, nil
}

func read(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
