package document

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// garden has a field of each kind that the reader knows.
type garden struct {
	Place  `yaml:",inline"`
	Kind   string            `yaml:"kind" enum:"kitchen|flower" default:"kitchen"`
	Beds   int               `yaml:"beds" min:"1" max:"64" default:"4"`
	Fence  *bool             `yaml:"fence" default:"true"`
	Rest   span              `yaml:"rest" default:"3 days"`
	Tools  []string          `yaml:"tools" split:"," default:"spade,rake"`
	Labels map[string]string `yaml:"labels"`
	Open   map[string]bool   `yaml:"open"`
	Plants []plant           `yaml:"plants"`
	Gate   lock              `yaml:"gate"`
	Values map[string]any    `yaml:"values"`
}

// Place is a part of a garden whose fields are the garden's.
type Place struct {
	Name string `yaml:"name" required:"true" format:"name"`
}

type plant struct {
	Name  string `yaml:"name" required:"true" scalar:"true"`
	Light light  `yaml:"light"`
	Seeds int    `yaml:"seeds"`
}

// light has the short form hours/shade.
type light struct {
	Hours string `yaml:"hours"`
	Shade string `yaml:"shade" enum:"none|half|full"`
}

// span reads itself.
type span struct{ days int }

// UnmarshalText reads "3 days".
func (s *span) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%d days", &s.days); err != nil {
		return fmt.Errorf("is no number of days")
	}
	return nil
}

// lock is read by a function of the schema.
type lock struct{ code string }

func sampleSchema() Schema {
	name := func(s string) string {
		if strings.ContainsAny(s, " /") {
			return "write one word"
		}
		return ""
	}
	return Schema{
		Name: "garden", Start: "start with a name", Merge: "write the fields out",
		Formats: map[string]Format{"name": {Words: "write one word", Check: name}},
		Words:   map[string]string{"herbs": "kitchen"},
		Types: map[reflect.Type]Read{reflect.TypeFor[lock](): func(d *Document, n *yaml.Node, v reflect.Value, path string) {
			if n.Kind != yaml.ScalarNode {
				d.Add(Error, n, path, "is "+KindOf(n)+", but must be text", "write the code")
				return
			}
			v.Set(reflect.ValueOf(lock{n.Value}))
		}},
		Short: map[reflect.Type]Read{reflect.TypeFor[light](): func(d *Document, n *yaml.Node, v reflect.Value, path string) {
			hours, shade, ok := strings.Cut(n.Value, "/")
			if !ok {
				d.Add(Error, n, path, fmt.Sprintf("%q is no light", Redact(n.Value)), "write hours/shade")
				return
			}
			v.Set(reflect.ValueOf(light{hours, shade}))
			d.Mark(Join(path, "hours"), n)
			d.Mark(Join(path, "shade"), n)
		}},
		Explain: func(path string) string { return "read about " + Plain(path) },
		MappingsWith: func(name string) []string {
			if name == "shade" {
				return []string{"plants.light"}
			}
			return nil
		},
	}
}

// read reads a garden as a package would that has a Schema.
func read(text string) (garden, *Document) {
	d := Parse(strings.NewReader(text), sampleSchema())
	var g garden
	if d.Root() == nil {
		return g, d
	}
	d.Decode(&g)
	d.Required(&g)
	d.SetDefaults(&g)
	return g, d
}

func TestDecode(t *testing.T) {
	got, d := read(`name: home
kind: flower
beds: 8
fence: false
rest: 5 days
tools: spade, hoe
labels: {a: b, c: }
open: {monday: true}
plants: [rose, {name: mint, light: 4/half, seeds: 3}]
gate: "1234"
values: {any: [1, {x: y}]}
`)
	want := garden{
		Place: Place{"home"}, Kind: "flower", Beds: 8, Fence: new(false), Rest: span{5}, Tools: []string{"spade", "hoe"},
		Labels: map[string]string{"a": "b", "c": ""}, Open: map[string]bool{"monday": true},
		Plants: []plant{{Name: "rose"}, {"mint", light{"4", "half"}, 3}}, Gate: lock{"1234"},
		Values: map[string]any{"any": []any{1, map[string]any{"x": "y"}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{}, lock{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if problems := d.Problems(); len(problems) > 0 {
		t.Error(problems)
	}
	for path, want := range map[string]bool{"plants[1].light.shade": true, "plants[0].name": true, "labels.c": true, "plants[0].seeds": false, "name": true} {
		if d.Written(path) != want {
			t.Errorf("%s is written: %t", path, !want)
		}
	}
	if got := d.FirstWritten()["plants.name"]; got != "plants[0].name" {
		t.Errorf("a plant's name is first written at %s", got)
	}
}

// TestDefaults: what is written counts, zero and false too.
func TestDefaults(t *testing.T) {
	got, d := read("name: home\nfence: false\n")
	want := garden{Place: Place{"home"}, Kind: "kitchen", Beds: 4, Fence: new(false), Rest: span{3}, Tools: []string{"spade", "rake"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{}, lock{})); diff != "" || d.Failed() {
		t.Errorf("read (-want +got):\n%s%v", diff, d.Problems())
	}
}

// TestMistakes: the problem and the place of each mistake.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"kind: flower\n":                     "1:1: error: name: is missing; write one word",
		"name: a b\n":                        `1:7: error: name: "a b" is not valid; write one word`,
		"name: ''\n":                         "1:7: error: name: is empty; write one word",
		"name: a\nkind: herbs\n":             `2:7: error: kind: "herbs" is not one of kitchen, flower; did you mean kitchen?`,
		"name: a\nbeds: 65\n":                "2:7: error: beds: 65 is greater than the maximum 64; write a number from 1 to 64",
		"name: a\nbeds: many\n":              `2:7: error: beds: "many" is not a whole number; read about beds`,
		"name: a\nbets: 3\n":                 "2:1: error: bets: is not a field of the document; did you mean beds?",
		"name: a\nshade: half\n":             "2:1: error: shade: is not a field of the document; that field belongs to plants.light",
		"name: a\nname: b\n":                 "2:1: error: name: is set twice, first on line 1; keep one of the two",
		"name: a\nrest: a while\n":           "2:7: error: rest: is no number of days; read about rest",
		"name: a\ngate: [1]\n":               "2:7: error: gate: is a list, but must be text; write the code",
		"name: a\nplants: [{light: full}]\n": "2:10: error: plants[0].name: is missing; read about plants.name\n2:18: error: plants[0].light: \"full\" is no light; write hours/shade",
		"name: a\n<<: {kind: flower}\n":      "2:1: error: <<: is a YAML merge key, which is not supported; write the fields out",
		"name: &a\n":                         "1:7: error: name: begins with & or !, which YAML does not read as part of the value; put quotes around it",
		"name： a\n":                          "1:5: error: name is followed by a full-width colon ：; write : and a space",
		"name: a\nopen: {monday: }\n":        "2:16: error: open.monday: has no value; write true or false",
		"":                                   "error: is empty; start with a name",
		"- a\n":                              "1:1: error: is not a mapping of fields; start with a name",
		"name: a\n---\nname: b\n":            "error: contains more than one document; write one garden per file",
	} {
		_, d := read(text)
		var got []string
		for _, p := range d.Problems() {
			got = append(got, strings.TrimSpace(p.String()))
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestMove: a value under a second spelling is read as its field, and a problem with it
// has the spelling that the document has.
func TestMove(t *testing.T) {
	for light, want := range map[string]string{
		"{sun: {shade: dark}}":                "1:32: error: plants[0].light.sun.shade: \"dark\" is not one of none, half, full; choose one of them",
		"{sun: {shade: half}}":                "",
		"{shade: half, sun: {shade: half}}":   "",
		"{shade: half, sun: {shade: full}}":   "1:38: error: plants[0].light.sun.shade: is the same field as plants[0].light.shade on line 1, but has another value; keep one of the two",
		"{sun: {shade: half, angle: steep}}":  "1:19: error: plants[0].light.sun: is not a field of plants[0].light; the fields are hours, shade",
		"{hours: '4', sun: {shade: half}}":    "",
		"{hours: [4], sun: {shade: half}}":    "1:26: error: plants[0].light.hours: is a list, but must be text; read about plants.light.hours",
		"{hours: '4', sun: {shade: [half]}}":  "1:44: error: plants[0].light.sun.shade: is a list, but must be text; read about plants.light.shade",
		"{hours: '4', sun: &a {shade: half}}": "",
	} {
		d := Parse(strings.NewReader("plants: [{light: "+light+", name: x}]\nname: a\n"), sampleSchema())
		entry := Lookup(d.Root(), "plants").Content[0]
		from := []string{"light", "sun", "shade"}
		n := Lookup(entry, from...)
		d.Put(entry, []string{"light", "shade"}, Remove(entry, from), n, "plants[0].light.sun.shade", "plants[0].light.shade")
		var g garden
		d.Decode(&g)
		if got := strings.TrimSpace(d.Problems().Error()); got != want {
			t.Errorf("%s: %s\nwant %s", light, got, want)
		}
		if want == "" && g.Plants[0].Light.Shade != "half" {
			t.Errorf("%s: the shade is %q", light, g.Plants[0].Light.Shade)
		}
	}
}
