package document

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzRead: no document brings the reader down, each problem has a message and a place
// in the text, and two readings of a text say the same.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"name: a\nkind: flower\nbeds: 8\nfence: false\nrest: 5 days\ntools: spade, hoe\nlabels: {a: b}\n",
		"name: home\nplants: [rose, {name: mint, light: 4/half}]\nvalues: {any: [1, {x: &x y}], again: *x}\n",
		"plants: [{nam: x}]\nname： b\nopen: {monday: }\ngate: [1]\n<<: {a: b}\n",
		"labels: {a: b, c, d: e}", "- a\n", "", "name: &a\n", "values:\n  a0: &a0 {x: 1}\n  a1: {x: *a0, y: *a0}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, d := read(text)
		problems := d.Problems()
		lines := strings.Count(text, "\n") + 1 + strings.Count(text, "\r") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + strings.Count(text, "\u0085") + 2*strings.Count(text, "\xe2\x80")
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 || p.Line > lines {
				t.Errorf("a problem without message or place: %+v", p)
			}
		}
		again, d := read(text)
		if second := d.Problems(); !reflect.DeepEqual(problems, second) {
			t.Errorf("read twice:\n%v\n---\n%v", problems, second)
		}
		if problems.Err() == nil && len(g.Values) == 0 && !reflect.DeepEqual(g, again) { // NaN in values is not equal to itself
			t.Errorf("read twice: %v and %v", g, again)
		}
	})
}
