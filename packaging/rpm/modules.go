package rpm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// stream is one stream of a module, as modules.yaml has it. What else a document
// says, which streams are the default and how they depend on each other, matters
// only to who installs out of streams.
type stream struct {
	Document string `yaml:"document"`
	Data     struct {
		Name      string    `yaml:"name"`
		Stream    yaml.Node `yaml:"stream"` // a word, or a number like 1.10
		Artifacts struct {
			RPMs []string `yaml:"rpms"`
		} `yaml:"artifacts"`
	} `yaml:"data"`
}

// readModules gives the packages that are of a module's stream, written as
// "name-epoch:version-release.arch", and the module of each.
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

// artifact writes a package as modules.yaml does.
func (e *entry) artifact() string {
	version := e.Version
	if !strings.Contains(version, ":") {
		version = "0:" + version
	}
	return e.Name + "-" + version + "." + e.Arch
}
