package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Paths of the table and the record in the checkout.
const (
	tableFile = "testdata/e2e/scenarios.yaml"
	shownFile = "testdata/e2e/shown.json"
)

// table is scenarios.yaml.
type table struct {
	// Walk are the configs of the clusters that every run of CI makes.
	Walk      []made     `yaml:"walk"`
	Scenarios []scenario `yaml:"scenarios"`
}

// made is a config with the pipelines that run on it.
type made struct {
	Config string `yaml:"config"`
	// Lines replace the lines of the config with these prefixes, after indentation.
	Lines map[string]string `yaml:"lines,omitempty"`
	// Charts is a file with add-ons that the test appends to the config.
	Charts string `yaml:"charts,omitempty"`
	// Systems are the operating systems of hosts other than Debian 12.
	Systems map[string]string `yaml:"systems,omitempty"`
	// Runs are the pipelines, one after another; create and delete by default.
	Runs []string `yaml:"runs,omitempty"`
}

// scenario is a lab test that runs when it is due.
type scenario struct {
	Name string `yaml:"name"`
	Says string `yaml:"says"` // what it tests
	made `yaml:",inline"`
	// Tests are the tests of testdata/e2e that must pass. Run is the pattern that selects them
	// if their names do not suffice.
	Tests []string          `yaml:"tests"`
	Run   string            `yaml:"run,omitempty"`
	Env   map[string]string `yaml:"env,omitempty"`
	// Files are the tests' own files: a change makes the scenario due.
	Files []string `yaml:"files"`
	// Covers are files and folders whose source counts, because their effect leaves no trace
	// on simulated hosts.
	Covers []string `yaml:"covers,omitempty"`
	// Addons reports that it also runs the components of add-ons.
	Addons  bool   `yaml:"addons,omitempty"`
	Minutes int    `yaml:"minutes"`           // estimate for two cores
	Prepare string `yaml:"prepare,omitempty"` // the make target for its prerequisites
}

// pattern returns the value of go test's -run.
func (s scenario) pattern() string {
	if s.Run != "" {
		return s.Run
	}
	return "^(" + strings.Join(s.Tests, "|") + ")$"
}

// readTable reads the table of the checkout at root.
func readTable(root string) (*table, error) {
	text, err := os.ReadFile(filepath.Join(root, tableFile))
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var t table
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("%s: %w", tableFile, err)
	}
	seen := map[string]bool{}
	for _, s := range t.Scenarios {
		switch {
		case s.Name == "" || seen[s.Name]:
			return nil, fmt.Errorf("%s: the name %q is empty or duplicated", tableFile, s.Name)
		case s.Config == "" || len(s.Tests) == 0 || len(s.Files) == 0 || s.Minutes <= 0 || s.Says == "":
			return nil, fmt.Errorf("%s: %s lacks its config, tests, files, minutes, or what it shows", tableFile, s.Name)
		}
		seen[s.Name] = true
	}
	return &t, nil
}

// find returns a scenario by its name.
func (t *table) find(name string) (scenario, error) {
	var names []string
	for _, s := range t.Scenarios {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return scenario{}, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(names, ", "))
}

// text returns the config for simulated hosts.
func (m made) text(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.Config))
	if err != nil {
		return "", err
	}
	text := string(b)
	for begins, by := range m.Lines {
		line := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(begins) + `.*$`)
		if !line.MatchString(text) {
			return "", fmt.Errorf("%s: no line begins with %q", m.Config, begins)
		}
		text = line.ReplaceAllString(text, "${1}"+strings.ReplaceAll(by, "$", "$$"))
	}
	if m.Charts != "" {
		addons, err := addonsOf(filepath.Join(root, m.Charts))
		if err != nil {
			return "", err
		}
		text += addons
	}
	return text, nil
}

// addonsOf returns the add-ons in a table of charts, as the end of a config.
func addonsOf(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var all struct {
		Charts []struct {
			Addon yaml.Node `yaml:"addon"`
		} `yaml:"charts"`
	}
	if err := yaml.Unmarshal(b, &all); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	var addons []*yaml.Node
	for i := range all.Charts {
		addons = append(addons, &all.Charts[i].Addon)
	}
	out, err := yaml.Marshal(map[string]any{"addons": addons})
	if err != nil {
		return "", err
	}
	return "  " + strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n  ") + "\n", nil
}
