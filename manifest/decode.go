package manifest

import (
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decode reads a cluster config strictly and completes it: second spellings are
// put in place, every value is checked, defaults are filled in, and the fields
// are held against each other. All problems are found in one go. The Cluster is
// nil when one of them is an error.
func Decode(r io.Reader) (*Cluster, Problems) { return decodeCluster(parse(r)) }

func decodeCluster(d *document) (*Cluster, Problems) {
	if d.root == nil || !d.header(ClusterKind) {
		return nil, d.finish()
	}
	d.moveAliases()
	c := d.walkCluster()
	d.required(reflect.ValueOf(c).Elem(), "")
	if d.problems.Err() == nil {
		c.public = d.public(c)
	}
	d.setDefaults(reflect.ValueOf(c).Elem(), "")
	d.inherit(c)
	d.derive(c)
	d.validate(c)
	d.notYetBuilt(c)
	c.values = d.valuesPlaces(c)
	problems := d.finish()
	if problems.Err() != nil {
		return nil, problems
	}
	return c, problems
}

// walkCluster reads the fields of a Cluster, each by itself.
func (d *document) walkCluster() *Cluster {
	c := &Cluster{}
	w := &walker{document: d}
	w.value(d.root, reflect.ValueOf(c).Elem(), "", "", 0)
	return c
}

// DecodeSources reads a document of kind Sources.
func DecodeSources(r io.Reader) (Sources, Problems) { return decodeSources(parse(r)) }

// Check gives every problem of a document, a Cluster or Sources by its kind.
func Check(r io.Reader) Problems {
	d := parse(r)
	if d.root != nil {
		if _, _, kind := lookup(d.root, []string{"kind"}); kind != nil && kind.Value == SourcesKind {
			_, problems := decodeSources(d)
			return problems
		}
	}
	_, problems := decodeCluster(d)
	return problems
}

func decodeSources(d *document) (Sources, Problems) {
	d.sources = true
	if d.root == nil || !d.header(SourcesKind) {
		return Sources{}, d.finish()
	}
	var doc struct {
		APIVersion string  `yaml:"apiVersion" required:"true"`
		Kind       string  `yaml:"kind" required:"true"`
		Spec       Sources `yaml:"spec" required:"true"`
	}
	w := &walker{document: d}
	v := reflect.ValueOf(&doc).Elem()
	w.value(d.root, v, "", "", 0)
	d.required(v, "")
	d.validateSources(doc.Spec, "spec")
	return doc.Spec, d.finish()
}

// header checks apiVersion and kind first: of a document of another kind every
// field would be a problem, and none of them the point.
func (d *document) header(kind string) bool {
	_, _, version := lookup(d.root, []string{"apiVersion"})
	_, _, have := lookup(d.root, []string{"kind"})
	ok := true
	check := func(n *yaml.Node, path, want string) {
		switch {
		case n == nil:
			d.add(Error, d.root, path, "is missing", "write "+path+": "+want)
			ok = false
		case n.Value != want:
			d.add(Error, n, path, "is "+shown(n.Value)+", not "+want, "write "+path+": "+want)
			ok = false
		}
	}
	check(version, "apiVersion", APIVersion)
	check(have, "kind", kind)
	return ok
}

// required reports fields that have to be written and are not. A struct that is
// not written at all asks for its fields too, unless it is optional as a whole.
func (d *document) required(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == secretType || reflect.PointerTo(v.Type()).Implements(textType) {
			return
		}
		for _, f := range fieldsOf(v.Type()) {
			at := join(path, f.name)
			fv := v.FieldByIndex(f.index)
			if f.tag.Get("required") == "true" && fv.IsZero() && !d.reported(at) {
				message := "is missing"
				if d.written[at] {
					message = "is empty"
				}
				d.add(Error, d.nearestPlace(at), at, message, d.howTo(f, at))
			}
			d.required(fv, at)
		}
	case reflect.Slice:
		if v.Type() == argsType {
			return
		}
		for i := range v.Len() {
			d.required(v.Index(i), indexed(path, i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			d.required(v.Elem(), path)
		}
	}
}

// reported tells whether an error about path stands already: about the field, a
// part of it, what holds it, or a misspelt name that may have meant it.
func (d *document) reported(path string) bool {
	for _, p := range d.problems {
		if p.Severity == Error && (within(p.Path, path) || within(path, p.Path)) {
			return true
		}
	}
	for g := range d.guessed {
		if within(path, g) {
			return true
		}
	}
	return false
}

// sound tells whether none of the fields has an error. A rule that holds fields
// against each other asks first: of two problems with one cause the second only
// leads astray.
func (d *document) sound(paths ...string) bool { return !slices.ContainsFunc(paths, d.reported) }

// explain is the advice to read about the field at path.
func (d *document) explain(path string) string {
	if d.full() {
		return "" // nobody will read it
	}
	if rest, ok := strings.CutPrefix(path, "spec"); ok && d.sources {
		path = "spec.sources" + rest
	}
	f, ok := ConfigFields().Find(path)
	if !ok || f.Path == "" {
		return "start from `kubexm config init`"
	}
	return "see `kubexm config explain " + f.Path + "`"
}

// howTo is the advice on a field that is not written.
func (d *document) howTo(f field, path string) string {
	if format, ok := formats[f.tag.Get("format")]; ok {
		return format.words
	}
	if words := enumOf(f.tag); len(words) > 0 {
		return "write one of " + strings.Join(words, ", ")
	}
	return d.explain(path)
}

// nearestPlace gives the node of path, or of the nearest mapping around it that
// is written.
func (d *document) nearestPlace(path string) *yaml.Node {
	for path != "" {
		if n, ok := d.places[path]; ok {
			return n
		}
		path = parentPath(path)
	}
	return d.root
}
