package versions

import (
	"bytes"
	_ "embed" // for supported.yaml
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed supported.yaml
var supportedText []byte

// System is a distribution that kubexm supports on hosts.
type System struct {
	ID       string   `yaml:"id"`       // in /etc/os-release, in lower case
	Name     string   `yaml:"name"`     // display name
	Releases []string `yaml:"releases"` // each with all of its minor versions
}

// Supported lists the supported operating systems of hosts, by ID.
func Supported() ([]System, error) {
	d := yaml.NewDecoder(bytes.NewReader(supportedText))
	d.KnownFields(true)
	var all struct {
		Systems []System `yaml:"systems"`
	}
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("versions/supported.yaml: %w", err)
	}
	return all.Systems, nil
}

// Is reports whether id and release, ID and VERSION_ID of /etc/os-release, are a release of s.
func (s System) Is(id, release string) bool {
	if !strings.EqualFold(s.ID, id) {
		return false
	}
	for _, r := range s.Releases {
		if strings.EqualFold(r, release) || len(release) > len(r) && strings.EqualFold(release[:len(r)+1], r+".") {
			return true
		}
	}
	return false
}

// String returns the distribution with its releases: "Debian 11, 12, 13".
func (s System) String() string { return s.Name + " " + strings.Join(s.Releases, ", ") }
