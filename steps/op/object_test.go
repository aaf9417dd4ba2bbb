package op

import (
	"encoding/json"
	"testing"
)

// FuzzParseObjects: manifests come from the internet, and from people.
func FuzzParseObjects(f *testing.F) {
	for _, s := range []string{"", "---\n", "a: b", "{apiVersion: v1, kind: A, metadata: {name: b}}", "{kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: b}}]}", "kind: [\n", "&a [*a]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := parseObjects(text)
		if err != nil {
			return
		}
		if len(objects) == 0 {
			t.Fatal("no object, and no error")
		}
		b, err := list(objects)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseObjects(b)
		if err != nil || len(again) != len(objects) {
			t.Fatalf("%s: %d objects, %v", b, len(again), err)
		}
	})
}

// FuzzParseLive: what a cluster answers is never trusted to have a form.
func FuzzParseLive(f *testing.F) {
	for _, s := range []string{"", "{}", "[]", `{"kind":"List","items":[{"metadata":1},{"metadata":{"name":"a","uid":"b"}}]}`, `{"kind":"List","items":3}`, `{"kind":"A","status":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseLive(text)
		if err != nil {
			return
		}
		for _, l := range all {
			_ = l.id()
			if b, err := json.Marshal(l.bare()); err != nil || len(b) == 0 {
				t.Fatal(err)
			}
		}
	})
}
