package manifest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest/document"
)

// eachField calls f for every field of the config's types, mappings included.
func eachField(f func(owner reflect.Type, x document.Key, path string)) {
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != argsType || t.Kind() == reflect.Map && t != anyMap {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == secretType || reflect.PointerTo(t).Implements(textType) {
			return
		}
		for _, x := range document.Keys(t) {
			f(t, x, document.Join(path, x.Name))
			walk(x.Type, document.Join(path, x.Name))
		}
	}
	walk(reflect.TypeFor[Cluster](), "")
}

// TestTags: every default is a value that the decoder would take, every format
// and every other word in the tags is one that something reads.
func TestTags(t *testing.T) {
	n := 0
	eachField(func(owner reflect.Type, x document.Key, path string) {
		n++
		if f := x.Tag.Get("format"); f != "" && formats[f].Check == nil {
			t.Errorf("%s: format %q is not known", path, f)
		}
		if _, said := x.Tag.Lookup("built"); said != slices.ContainsFunc(Choices(), func(c Choice) bool { return c.Path == path }) {
			t.Errorf("%s: says which values are built: %t, and is not the same among the choices", path, said)
		}
		def, ok := x.Tag.Lookup("default")
		if !ok {
			return
		}
		v := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "F", Type: x.Type, Tag: x.Tag}}))
		empty := document.Parse(strings.NewReader("{}"), (&config{}).schema())
		empty.SetDefaults(v.Interface())
		zero := def == "false" || def == "0"
		if f := v.Elem().Field(0); f.IsZero() != zero {
			t.Errorf("%s: default %q gives %v", path, def, f)
		}
		written := document.Parse(strings.NewReader(x.Name+": "+asWritten(def, x)), (&config{}).schema())
		written.Decode(v.Interface())
		if problems := written.Problems(); len(problems) > 0 {
			t.Errorf("%s: default %q: %v", path, def, problems)
		}
		if words := document.Enum(x.Tag); len(words) > 0 && !slices.Contains(words, def) {
			t.Errorf("%s: default %q is not one of %v", path, def, words)
		}
	})
	if n < 150 {
		t.Errorf("%d fields were looked at", n)
	}
}

// asWritten is a default as a config has it: a text that looks like a number is quoted.
func asWritten(def string, x document.Key) string {
	if x.Type.Kind() == reflect.String {
		return strconv.Quote(def)
	}
	return def
}

// TestDocstrings: every field says what it means, and its sentence about the
// default, which explain shows apart, is the last one.
func TestDocstrings(t *testing.T) {
	for _, f := range ConfigFields().All() {
		switch _, def, ok := strings.Cut(f.Doc, "Default: "); {
		case f.Doc == "":
			t.Errorf("%s has no comment", f.Path)
		case !strings.HasSuffix(f.Doc, "."):
			t.Errorf("%s: the comment is no sentence: %s", f.Path, f.Doc)
		case ok && strings.Contains(def, ". "):
			t.Errorf("%s: more follows the default: %s", f.Path, def)
		case ok && f.Default != "":
			t.Errorf("%s: the comment and a tag name a default", f.Path)
		}
	}
}

// TestFieldTree: the tree that explain, schema and docs read has every leaf
// that the decoder knows.
func TestFieldTree(t *testing.T) {
	root := ConfigFields()
	for _, path := range fieldPaths() {
		f, ok := root.Find(path)
		if !ok || f.Path != path || len(f.Fields) > 0 {
			t.Errorf("%s: found %q, %v", path, f.Path, ok)
		}
	}
	for _, x := range []struct{ path, want string }{
		{"", ""}, {"spec.hosts[3].labels.disk", "spec.hosts.labels"}, {`spec.registry.auths["a.b:1"].password`, "spec.registry.auths.password"},
		{"spec.registry.auths.mine.password", "spec.registry.auths.password"},
	} {
		if f, ok := root.Find(x.path); !ok || f.Path != x.want {
			t.Errorf("Find(%s) is %q, %v", x.path, f.Path, ok)
		}
	}
	for _, path := range []string{"spec.none", "specs", "spec.etcd.type.x", "spec.registry.auths.mine.none"} {
		if f, ok := root.Find(path); ok {
			t.Errorf("Find(%s) found %q", path, f.Path)
		}
	}
}

// TestFieldWords: how fields are described to people.
func TestFieldWords(t *testing.T) {
	root := ConfigFields()
	for path, want := range map[string]string{
		"spec.hosts":                        "list of mappings | ",
		"spec.bundle.platforms":             "list of platforms | ",
		"spec.registry.auths":               "mapping of names to mappings | ",
		"spec.hosts.labels":                 "mapping of names to text | ",
		"spec.kubernetes.featureGates":      "mapping of names to true or false | ",
		"spec.hosts.password":               "secret | ",
		"spec.ssh.connectionTimeout":        "time span | ",
		"spec.etcd.extraArgs":               "flags | ",
		"spec.addons.values":                "anything | ",
		"spec.etcd.snapshotCount":           "whole number | 1 or more",
		"spec.etcd.autoCompactionRetention": "whole number | 0 or more",
		"spec.ssh.port":                     "whole number | 1 to 65535",
		"spec.network.kubePodsCIDR":         "list of text | an address range, as in 10.233.64.0/18",
		"spec.etcd.type":                    "text | kubexm, kubeadm, external",
	} {
		f, _ := root.Find(path)
		if got := f.Type() + " | " + f.Allowed(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// fieldPaths lists every leaf document.Key of a Cluster, as "spec.etcd.type".
func fieldPaths() []string {
	var out []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != argsType || t.Kind() == reflect.Map && t != anyMap {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == secretType || reflect.PointerTo(t).Implements(textType) {
			out = append(out, path)
			return
		}
		for _, f := range document.Keys(t) {
			walk(f.Type, document.Join(path, f.Name))
		}
	}
	walk(reflect.TypeFor[Cluster](), "")
	return out
}
