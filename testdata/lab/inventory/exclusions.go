package inventory

import (
	"bytes"
	_ "embed" // for the list
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed exclusions.yaml
var exclusionsText []byte

// Exclusion is what may differ, and why.
type Exclusion struct {
	Kinds []string `yaml:"kinds"`
	Name  string   `yaml:"name"` // a regular expression for the whole name
	Why   string   `yaml:"why"`

	name *regexp.Regexp
}

// Exclusions are all that may differ.
type Exclusions []Exclusion

// ReadExclusions reads the committed list.
func ReadExclusions() (Exclusions, error) { return parseExclusions(exclusionsText) }

func parseExclusions(text []byte) (Exclusions, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var all Exclusions
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	for i, e := range all {
		if len(e.Kinds) == 0 || e.Name == "" || e.Why == "" {
			return nil, fmt.Errorf("exclusion %d: %w", i, errors.New("kinds, name and why are needed"))
		}
		re, err := regexp.Compile("^(?:" + e.Name + ")$")
		if err != nil {
			return nil, fmt.Errorf("exclusion %d: %w", i, err)
		}
		all[i].name = re
	}
	return all, nil
}

func (all Exclusions) covers(t Thing) bool {
	return slices.ContainsFunc(all, func(e Exclusion) bool { return slices.Contains(e.Kinds, t.Kind) && e.name.MatchString(t.Name) })
}
