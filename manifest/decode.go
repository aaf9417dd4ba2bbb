package manifest

import (
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// config is a document that is decoded as a Cluster or as Sources.
type config struct {
	*document.Document
	sources bool // the document is of kind Sources
}

const start = "start from `kubexm config init`"

func parse(r io.Reader) *config {
	d := &config{}
	d.Document = document.Parse(r, d.schema())
	return d
}

// schema returns what a document needs in addition to the types of a config.
func (d *config) schema() document.Schema {
	return document.Schema{
		Name: "config", Start: start, Merge: "write all fields; settings that all hosts share belong in spec.ssh",
		Formats: formats, Words: otherWords,
		Types:   map[reflect.Type]document.Read{secretType: readSecret, argsType: readArgs},
		Short:   map[reflect.Type]document.Read{reflect.TypeFor[Taint](): readTaint},
		Explain: d.explain, MappingsWith: homesOf,
	}
}

// Decode reads a cluster config strictly and completes it. It moves second spellings to their
// fields, checks every value, sets defaults, and validates the fields against each other. It
// reports all problems in one pass. The Cluster is nil if one of them is an error.
func Decode(r io.Reader) (*Cluster, Problems) { return decodeCluster(parse(r)) }

func decodeCluster(d *config) (*Cluster, Problems) {
	if d.Root() == nil || !d.header(ClusterKind) {
		return nil, d.Problems()
	}
	d.moveAliases()
	c := d.walkCluster()
	d.Required(c)
	if !d.Failed() {
		c.public = d.public(c)
	}
	d.SetDefaults(c)
	d.inherit(c)
	d.derive(c)
	d.validate(c)
	d.notYetBuilt(c)
	c.values = d.valuesPlaces(c)
	problems := d.Problems()
	if problems.Err() != nil {
		return nil, problems
	}
	return c, problems
}

// walkCluster decodes the fields of a Cluster, each independently of the others.
func (d *config) walkCluster() *Cluster {
	c := &Cluster{}
	d.Decode(c)
	return c
}

// DecodeSources reads a document of kind Sources.
func DecodeSources(r io.Reader) (Sources, Problems) { return decodeSources(parse(r)) }

// Check returns every problem of a document, which is a Cluster or Sources by its kind.
func Check(r io.Reader) Problems {
	d := parse(r)
	if d.Root() != nil {
		if kind := document.Lookup(d.Root(), "kind"); kind != nil && kind.Value == SourcesKind {
			_, problems := decodeSources(d)
			return problems
		}
	}
	_, problems := decodeCluster(d)
	return problems
}

func decodeSources(d *config) (Sources, Problems) {
	d.sources = true
	if d.Root() == nil || !d.header(SourcesKind) {
		return Sources{}, d.Problems()
	}
	var doc struct {
		APIVersion string  `yaml:"apiVersion" required:"true"`
		Kind       string  `yaml:"kind" required:"true"`
		Spec       Sources `yaml:"spec" required:"true"`
	}
	d.Decode(&doc)
	d.Required(&doc)
	d.validateSources(doc.Spec, "spec")
	return doc.Spec, d.Problems()
}

// header checks apiVersion and kind first: in a document of another kind every field would be
// reported, and none of these problems would be the cause.
func (d *config) header(kind string) bool {
	version, have := document.Lookup(d.Root(), "apiVersion"), document.Lookup(d.Root(), "kind")
	ok := true
	check := func(n *yaml.Node, path, want string) {
		switch {
		case n == nil:
			d.Add(Error, d.Root(), path, "is missing", "write "+path+": "+want)
			ok = false
		case n.Value != want:
			d.Add(Error, n, path, "is "+document.Redact(n.Value)+", not "+want, "write "+path+": "+want)
			ok = false
		}
	}
	check(version, "apiVersion", APIVersion)
	check(have, "kind", kind)
	return ok
}

// explain returns the advice to run `kubexm config explain` for the field at path.
func (d *config) explain(path string) string {
	if rest, ok := strings.CutPrefix(path, "spec"); ok && d.sources {
		path = "spec.sources" + rest
	}
	f, ok := ConfigFields().Find(path)
	if !ok || f.Path == "" {
		return start
	}
	return "see `kubexm config explain " + f.Path + "`"
}
