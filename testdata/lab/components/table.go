package components

import (
	"bytes"
	"cmp"
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

//go:embed asked.yaml
var asked []byte

//go:embed alternatives.yaml
var alternatives []byte

// Component is one row of the table.
type Component struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"` // with a leading v
	// Module is where its files come from; none for the lab's own programs.
	Module string `yaml:"module,omitempty"`
	// Served is the path that the module is to be had at, where it is not its own.
	Served string `yaml:"served,omitempty"`
	// At is the version of the module, where it is another than the component's: a commit.
	At string `yaml:"at,omitempty" json:",omitempty"`
	// Replace are versions of modules that upstream takes from folders of its own repository.
	Replace map[string]string `yaml:"replace,omitempty" json:",omitempty"`
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
	// Trees are folders of the module with all that is below them: name → path.
	Trees map[string]string `yaml:"trees,omitempty" json:",omitempty"`

	// ByKubernetes are the versions that go with other minor releases of Kubernetes
	// than the table's: "1.33" → version. They do not decide what is built of a row.
	ByKubernetes map[string]string `yaml:"byKubernetes,omitempty" json:"-"`
	// Others are further versions that verify; of Kubernetes alone.
	Others []string `yaml:"others,omitempty" json:"-"`

	// Arch is the architecture that it is built for; "" is this machine's.
	Arch string `yaml:"-" json:"-"`
}

// For gives the rows for an architecture.
func For(rows []Component, arch string) []Component {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Arch = arch
	}
	return rows
}

// GOARCH is the architecture that the component is built for, by Go's name of it.
func (c Component) GOARCH() string { return cmp.Or(c.Arch, runtime.GOARCH) }

// Edit replaces a line's text in a file of the module, which has it once.
type Edit struct {
	File string `yaml:"file"` // from the module's top folder
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// Kubernetes is the component whose version a person may choose.
const Kubernetes = "kubernetes"

// Table gives the rows, in their order. A version of Kubernetes other than the
// table's takes its place, and each row that names a version for its minor release
// follows; "" leaves all as they are.
func Table(kubernetes string) ([]Component, error) {
	all, err := read("components.yaml", table)
	if err != nil || kubernetes == "" {
		return all, err
	}
	version := "v" + strings.TrimPrefix(kubernetes, "v")
	for i := range all {
		if all[i].Name == Kubernetes {
			all[i].Version = version
		}
		if v, ok := all[i].ByKubernetes[minor(version)]; ok {
			all[i].Version = v
		}
	}
	return all, nil
}

// minor gives 1.33 for v1.33.1.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Choose gives the rows with others in the place of some: each choice is a name and
// a version, "containerd=v1.7.27", of a row of alternatives.yaml or of rows itself.
func Choose(rows []Component, choices ...string) ([]Component, error) {
	others, err := read("alternatives.yaml", alternatives)
	if err != nil {
		return nil, err
	}
	rows = slices.Clone(rows)
	for _, choice := range choices {
		name, version, _ := strings.Cut(choice, "=")
		at := slices.IndexFunc(rows, func(c Component) bool { return c.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("the lab has no component %q", name)
		}
		known := []string{rows[at].Version}
		for _, c := range others {
			if c.Name != name {
				continue
			}
			if known = append(known, c.Version); c.Version == version {
				rows[at] = c
			}
		}
		if rows[at].Version != version {
			return nil, fmt.Errorf("the lab has no %s %q, but %s", name, version, strings.Join(known, ", "))
		}
	}
	return rows, nil
}

// Addons gives what add-ons run, which no lab builds unless a test asks for it.
func Addons() ([]Component, error) { return read("addons.yaml", addons) }

// Asked gives what a lab builds only where its config asks for an image of it.
func Asked() ([]Component, error) { return read("asked.yaml", asked) }

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

// Dir is where the component's programs and files are in a cache.
func (c Component) Dir(cache string) string {
	return filepath.Join(cache, "components", c.Name, c.Version, c.GOARCH())
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
