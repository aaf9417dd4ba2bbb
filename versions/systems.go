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

// systems is what is known of operating systems: by format, the distributions that
// have it (ID in their /etc/os-release) and the packages that every host gets.
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

// format gives the format of an operating system's packages: what the config
// says, else what is known of the distribution; "" where neither is.
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

// known gives every distribution whose format is known, sorted.
func (s *systems) known() []string {
	all := slices.Concat(s.Distributions[manifest.Deb], s.Distributions[manifest.RPM])
	slices.Sort(all)
	return all
}
