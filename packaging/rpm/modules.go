package rpm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// stream is one stream of a module in modules.yaml. Other documents, on default streams
// and their dependencies, are only needed to install from streams.
type stream struct {
	Document string `yaml:"document"`
	Data     struct {
		Name      string    `yaml:"name"`
		Stream    yaml.Node `yaml:"stream"` // a string, or a number such as 1.10
		Artifacts struct {
			RPMs []string `yaml:"rpms"`
		} `yaml:"artifacts"`
	} `yaml:"data"`
}

// readModules returns the packages of module streams, as "name-epoch:version-release.arch",
// with their modules.
func readModules(r io.Reader) (map[string]string, error) {
	d := yaml.NewDecoder(r)
	out := map[string]string{}
	for n := 1; ; n++ {
		var s stream
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if s.Document != "modulemd" {
			continue
		}
		for _, a := range s.Data.Artifacts.RPMs {
			out[a] = s.Data.Name
		}
	}
}

// artifact formats a package as in modules.yaml.
func (e *entry) artifact() string {
	version := e.Version
	if !strings.Contains(version, ":") {
		version = "0:" + version
	}
	return e.Name + "-" + version + "." + e.Arch
}
