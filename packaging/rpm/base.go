package rpm

import (
	_ "embed"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/packaging"
)

//go:embed base.yaml
var baseYAML []byte

// baseLine lists alternative names of a package that every installation has.
type baseLine struct {
	Any []string `yaml:"any"`
	Why string   `yaml:"why"`
}

func readBase() ([]baseLine, error) {
	var out []baseLine
	if err := yaml.Unmarshal(baseYAML, &out); err != nil {
		return nil, fmt.Errorf("list of base packages: %w", err)
	}
	return out, nil
}

// markBase marks, for each line, the latest package of the first name that exists.
// Packages must be in the order of a universe: the latest of a name comes first.
func markBase(all []*packaging.Package) error {
	lines, err := readBase()
	if err != nil {
		return err
	}
	for _, line := range lines {
		for _, name := range line.Any {
			i := slices.IndexFunc(all, func(p *packaging.Package) bool { return p.Name == name })
			if i >= 0 {
				all[i].Base = true
				break
			}
		}
	}
	return nil
}
