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

// Where the table and the record are, in the checkout.
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

// made is a config, and what is done with it.
type made struct {
	Config string `yaml:"config"`
	// Lines replace those lines of the config that begin like this, indented or not.
	Lines map[string]string `yaml:"lines,omitempty"`
	// Charts is a file with add-ons that the test writes below the config.
	Charts string `yaml:"charts,omitempty"`
	// Systems are those of hosts that have another than Debian 12.
	Systems map[string]string `yaml:"systems,omitempty"`
	// Runs are the pipelines, one after another; create and delete where there are none.
	Runs []string `yaml:"runs,omitempty"`
}

// scenario is a lab test that runs when it is due.
type scenario struct {
	Name string `yaml:"name"`
	Says string `yaml:"says"` // what it shows
	made `yaml:",inline"`
	// Tests are the tests of testdata/e2e that have to pass, and Run the pattern that
	// picks them where their names alone do not.
	Tests []string          `yaml:"tests"`
	Run   string            `yaml:"run,omitempty"`
	Env   map[string]string `yaml:"env,omitempty"`
	// Files are the tests' own files: another content makes the scenario due.
	Files []string `yaml:"files"`
	// Covers are files and folders whose source counts, because what they do leaves no
	// trace on simulated hosts.
	Covers []string `yaml:"covers,omitempty"`
	// Addons says that it runs the components of add-ons too.
	Addons  bool   `yaml:"addons,omitempty"`
	Minutes int    `yaml:"minutes"`           // that it takes on two cores, about
	Prepare string `yaml:"prepare,omitempty"` // the make target that brings what it needs
}

// pattern gives the value of go test's -run.
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
			return nil, fmt.Errorf("%s: the name %q is empty or there twice", tableFile, s.Name)
		case s.Config == "" || len(s.Tests) == 0 || len(s.Files) == 0 || s.Minutes <= 0 || s.Says == "":
			return nil, fmt.Errorf("%s: %s lacks its config, tests, files, minutes, or what it shows", tableFile, s.Name)
		}
		seen[s.Name] = true
	}
	return &t, nil
}

// find gives a scenario by its name.
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

// text gives the config for simulated hosts.
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

// addonsOf gives the add-ons that a table of charts names, as the end of a config.
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
