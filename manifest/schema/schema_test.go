package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/mensylisir/kubexm/manifest"
)

// compile checks a schema against the dialect's own and makes it ready for use.
func compile(t *testing.T, s map[string]any) *jsonschema.Schema {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kubexm.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("kubexm.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// instance reads YAML as the schema sees it.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhatDecodesFits: configs without errors fit the schema.
func TestWhatDecodesFits(t *testing.T) {
	s := compile(t, Cluster())
	files, err := filepath.Glob("../../cmd/kubexm/starters/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "../testdata/sample-mended.yaml", "../testdata/public.yaml", "../../testdata/configs/quickstart.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{
		"hosts: {name: a, address: b, taints: 'a=b:NoSchedule', jumpHost: j.example, labels: {a: b}}",
		"addons: metallb", "addons: [{name: a, url: x, type: chart}]", "bundle: {operatingSystems: [{name: debian, releases: [12, 22.04]}]}",
		"host: 192.0.2.1 a", "highAvailability: {keepalived: {vrid: 1}, kubevip: {vip: 192.0.2.1, interface: eth0}}",
		"etcd: {extraArgs: [a=b, {name: a, value: 1}], local: {extraArgs: {a: b}}, nodes: [a], autoCompactionRetention: 0}",
		"controlPlaneEndpoint: {externalLoadBalancer: kubexm, lb_address: 192.0.2.1}", "runtime: {type: crio, version: 1.10}",
	} {
		if err := s.Validate(instance(t, []byte(head+"  kubernetes: {version: v1.34.10}\n  "+text+"\n"))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := s.Validate(instance(t, []byte(head+"  kubernetes: {version: v1.34.10, containerRuntime: docker, proxyMode: ipvs}\n"))); err != nil {
		t.Error(err)
	}
}

const head = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n"

// TestMistakesDoNotFit: what the decoder says of names, types, words and bounds
// the schema says too.
func TestMistakesDoNotFit(t *testing.T) {
	s := compile(t, Cluster())
	n := 0
	for _, theme := range []string{"header", "names", "types"} {
		a, err := txtar.ParseFile("../testdata/mistakes/" + theme + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range a.Files {
			name, ok := strings.CutSuffix(f.Name, ".yaml")
			if !ok || slices.Contains(beyondTheSchema, name) || bytes.Contains(a.Files[i+1].Data, []byte("warning:")) {
				continue
			}
			n++
			if s.Validate(instance(t, f.Data)) == nil {
				t.Errorf("%s/%s fits the schema", theme, name)
			}
		}
	}
	for _, text := range []string{"network: {plugin: weave}", "ssh: {port: 70000}", "etcd: {snapshotCount: 0}", "hosts: [{name: a}]", "runtime: {type: crioo}"} {
		if s.Validate(instance(t, []byte(head+"  kubernetes: {version: v1.34.10}\n  "+text+"\n"))) == nil {
			t.Errorf("%s fits the schema", text)
		}
	}
	if n < 20 {
		t.Errorf("%d mistakes were tried", n)
	}
}

// beyondTheSchema are mistakes that a schema does not see: the shapes of texts,
// and how YAML writes a value.
var beyondTheSchema = []string{"bad-name", "time-without-unit", "hex-for-a-number", "flag-with-a-space", "no-errors",
	"values-with-a-key-twice", "values-with-a-key-that-is-a-list"}

// TestEveryFieldIsThere, with what it means and what it waits for.
func TestEveryFieldIsThere(t *testing.T) {
	b, err := json.Marshal(Cluster())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range manifest.ConfigFields().All() {
		doc, err := json.Marshal(f.Doc)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, doc[1:len(doc)-1]) {
			t.Errorf("%s: what it means is not in the schema", f.Path)
		}
	}
	if !bytes.Contains(b, []byte("Accepted, not yet built: ")) {
		t.Error("nothing waits")
	}
	again, err := json.Marshal(Cluster())
	if err != nil || !bytes.Equal(b, again) {
		t.Error("made twice, the schema differs")
	}
}

// TestSources: the schema of the other kind of document.
func TestSources(t *testing.T) {
	s := compile(t, Sources())
	const head = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Sources\nspec:\n"
	if err := s.Validate(instance(t, []byte(head+"  zone: cn\n  replace: [{from: a, to: b, plainHTTP: true}]\n"))); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"  zone: us\n", "  replace: [{from: a}]\n", "  x: 1\n"} {
		if s.Validate(instance(t, []byte(head+text))) == nil {
			t.Errorf("%s fits", text)
		}
	}
}

// TestReferences: every definition is used, and every second spelling is marked.
func TestReferences(t *testing.T) {
	s := Cluster()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	defs, ok := s["$defs"].(map[string]any)
	if !ok || len(defs) == 0 {
		t.Fatal("no definitions")
	}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		if !bytes.Contains(b, []byte(`"#/$defs/`+name+`"`)) {
			t.Errorf("%s is defined and not used", name)
		}
	}
	for _, a := range manifest.Aliases() {
		if a.From != a.To && !bytes.Contains(b, []byte("A second spelling of "+a.To+".")) {
			t.Errorf("%s is not in the schema", a.From)
		}
	}
}
