package components

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed components.yaml
var table []byte

//go:embed addons.yaml
var addons []byte

// Component is one row of the table.
type Component struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"` // with a leading v
	// Module is where its files come from; none for the lab's own programs.
	Module string `yaml:"module,omitempty"`
	// Served is the path that the module is to be had at, where it is not its own.
	Served string `yaml:"served,omitempty"`
	// StandsFor says what the component is used in place of; "" where it is what it is named.
	StandsFor string `yaml:"standsFor,omitempty"`
	CGO       bool   `yaml:"cgo,omitempty"` // needs C; linked statically all the same
	Tags      string `yaml:"tags,omitempty"`
	LDFlags   string `yaml:"ldflags,omitempty"`
	// Packages are Debian's packages that the build needs.
	Packages []string `yaml:"packages,omitempty"`
	// Add is a file of the component's folder that is compiled into its main package.
	Add string `yaml:"add,omitempty"`
	// Edits change lines of the module's own source.
	Edits    []Edit            `yaml:"edits,omitempty"`
	Programs map[string]string `yaml:"programs"`        // name → package
	Files    map[string]string `yaml:"files,omitempty"` // name → path in the module
}

// Edit replaces a line's text in a file of the module, which has it once.
type Edit struct {
	File string `yaml:"file"` // from the module's top folder
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// Kubernetes is the component whose version a person may choose.
const Kubernetes = "kubernetes"

// Table gives the rows, in their order. A version of Kubernetes other than the
// table's takes its place; "" leaves it.
func Table(kubernetes string) ([]Component, error) {
	all, err := read("components.yaml", table)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == Kubernetes && kubernetes != "" {
			all[i].Version = "v" + strings.TrimPrefix(kubernetes, "v")
		}
	}
	return all, nil
}

// Addons gives what add-ons run, which no lab builds unless a test asks for it.
func Addons() ([]Component, error) { return read("addons.yaml", addons) }

func read(name string, text []byte) ([]Component, error) {
	var all []Component
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// everything gives the rows of both tables.
func everything() ([]Component, error) {
	all, err := Table("")
	if err != nil {
		return nil, err
	}
	more, err := Addons()
	return append(all, more...), err
}

// Find gives the row of a name.
func Find(all []Component, name string) (Component, error) {
	i := slices.IndexFunc(all, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, fmt.Errorf("the lab has no component %q", name)
	}
	return all[i], nil
}

// Dir is where the component's programs and files are in a cache, for this machine's architecture.
func (c Component) Dir(cache string) string {
	return filepath.Join(cache, "components", c.Name, c.Version, runtime.GOARCH)
}

// names lists the component's programs, sorted.
func (c Component) names() []string { return slices.Sorted(maps.Keys(c.Programs)) }

// ldflags are the linker's flags with the version filled in.
func (c Component) ldflags() string {
	bare := strings.TrimPrefix(c.Version, "v")
	minor := strings.Split(bare+"..", ".")[1]
	f := "-s -w -buildid= "
	if c.CGO {
		f += "-linkmode external -extldflags -static "
	}
	return f + strings.NewReplacer("{version}", c.Version, "{bare}", bare, "{minor}", minor).Replace(c.LDFlags)
}
