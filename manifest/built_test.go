package manifest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryFieldIsUsedOrWaits: no field of the config is silently ignored.
func TestEveryFieldIsUsedOrWaits(t *testing.T) {
	leaves := FieldPaths()
	for _, leaf := range leaves {
		used := slices.Contains(Used(), leaf)
		var waits []string
		for _, w := range NotYetBuilt() {
			if within(leaf, w.Path) {
				waits = append(waits, w.Path)
			}
		}
		switch {
		case !used && len(waits) == 0:
			t.Errorf("%s: nothing acts on it, and nothing says so", leaf)
		case len(waits) > 1:
			t.Errorf("%s: waits twice, by %v", leaf, waits)
		case used && slices.Contains(waits, leaf):
			t.Errorf("%s: is used, and is said to wait", leaf)
		}
	}
	for _, u := range Used() {
		if !slices.Contains(leaves, u) {
			t.Errorf("%s: is said to be used, and is no leaf field", u)
		}
	}
	root := ConfigFields()
	for _, w := range NotYetBuilt() {
		if f, ok := root.Find(w.Path); !ok || f.Path != w.Path {
			t.Errorf("%s: is said to wait, and is no field", w.Path)
		}
		if w.For == "" {
			t.Errorf("%s: waits for nothing", w.Path)
		}
	}
}

// readers are the folders whose code acts on the config. In this package only
// what is asked for by others counts, not what decodes and validates.
var readers = []string{"../versions", "../bundle", "../bundle/fetch", "../cmd/kubexm", "ranges.go", "rewrite.go",
	"../registry", "../steps/*", "../installer", "../installer/*"}

// TestUsedFieldsAreRead: a field that is said to be used is named by code
// outside the decoder, in a file that names what holds it too.
func TestUsedFieldsAreRead(t *testing.T) {
	sources := sourcesOf(t, readers)
	names := goNames()
	for _, u := range Used() {
		chain, ok := names[u]
		if !ok {
			t.Errorf("%s: no Go field", u)
			continue
		}
		holder, last := "", chain[len(chain)-1]
		if len(chain) > 1 {
			holder = chain[len(chain)-2]
		}
		if u == "apiVersion" || u == "kind" {
			continue // the decoder itself acts on them
		}
		if !slices.ContainsFunc(sources, func(s string) bool {
			return regexp.MustCompile(`\.`+last+`\b`).MatchString(s) && regexp.MustCompile(`\b`+holder+`\b`).MatchString(s)
		}) {
			t.Errorf("%s: no code reads .%s of .%s", u, last, holder)
		}
	}
}

func sourcesOf(t *testing.T, places []string) []string {
	t.Helper()
	var out []string
	for _, place := range places {
		pattern := place
		if !strings.HasSuffix(place, ".go") {
			pattern += "/*.go"
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") || strings.Contains(filepath.Base(f), "config") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
	}
	return out
}

// goNames gives the Go names of every leaf field, from the Cluster on.
func goNames() map[string][]string {
	out := map[string][]string{}
	var walk func(t reflect.Type, path string, names []string)
	walk = func(t reflect.Type, path string, names []string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != argsType || t.Kind() == reflect.Map && t != anyMap {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == secretType || reflect.PointerTo(t).Implements(textType) {
			out[path] = names
			return
		}
		for _, f := range fieldsOf(t) {
			walk(f.typ, join(path, f.name), append(slices.Clone(names), f.owner.Field(f.index[len(f.index)-1]).Name))
		}
	}
	walk(reflect.TypeFor[Cluster](), "", nil)
	return out
}

// TestWaitingFor: a mapping of which a part is used does not wait as a whole.
func TestWaitingFor(t *testing.T) {
	leaf, waits := "", NotYetBuilt()[0]
	for _, u := range Used() {
		if WaitingFor(u) != "" {
			t.Errorf("%s is used, and waits for %s", u, WaitingFor(u))
		}
		if within(u, waits.Path) {
			leaf = u
		}
	}
	if got := WaitingFor(waits.Path); (leaf == "") != (got == waits.For) {
		t.Errorf("%s waits for %q", waits.Path, got)
	}
	if got := WaitingFor("spec.monitoring.enabled"); got == "" {
		t.Error("a field under one that waits does not wait")
	}
}

// TestNotYetBuiltIsSaid: once for each field that waits, at its first place.
func TestNotYetBuiltIsSaid(t *testing.T) {
	_, problems := Decode(strings.NewReader(header + `
  kubernetes: {version: v1.34.10}
  addons:
    - {name: a, namespace: x}
    - {name: b, namespace: y}
  monitoring: {enabled: false}
`))
	var got []string
	for _, p := range problems {
		if strings.HasPrefix(p.Message, "accepted, not yet built: ") && p.Severity == Warning {
			got = append(got, p.String())
		}
	}
	want := []string{"7:28: warning: spec.addons[0].namespace: accepted, not yet built: charts", "9:15: warning: spec.monitoring: accepted, not yet built: monitoring"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}
