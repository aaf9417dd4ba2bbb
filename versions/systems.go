package versions

import (
	"bytes"
	_ "embed" // for systems.yaml
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

//go:embed systems.yaml
var systemsText []byte

// systems lists by package format the distributions with this format (ID in /etc/os-release),
// the packages for every host, and those for hosts with a configured time zone.
type systems struct {
	Distributions map[string][]string `yaml:"distributions"`
	Packages      map[string][]string `yaml:"packages"`
	Timezone      map[string][]string `yaml:"timezone"`
}

func loadSystems() (*systems, error) {
	d := yaml.NewDecoder(bytes.NewReader(systemsText))
	d.KnownFields(true)
	s := &systems{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("versions/systems.yaml: %w", err)
	}
	return s, nil
}

// format returns the package format of an operating system: the one in the config, else the one
// of the distribution; "" if it is unknown.
func (s *systems) format(system manifest.OperatingSystem) string {
	if system.Format != "" {
		return system.Format
	}
	for _, format := range []string{manifest.Deb, manifest.RPM} {
		if slices.Contains(s.Distributions[format], system.Name) {
			return format
		}
	}
	return ""
}

// known returns the distributions with a known package format, sorted.
func (s *systems) known() []string {
	all := slices.Concat(s.Distributions[manifest.Deb], s.Distributions[manifest.RPM])
	slices.Sort(all)
	return all
}
