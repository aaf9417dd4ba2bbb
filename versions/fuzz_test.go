package versions

import (
	"strings"
	"testing"
)

// FuzzDecode holds that no text makes the reader panic, and that what it
// accepts goes round through Encode.
func FuzzDecode(f *testing.F) {
	f.Add(overlayHead)
	f.Add(overlayHead + "components: {runc: {versions: {v1.9.9: {kubernetes: '>=1.30', sha256: {amd64: " + hexA + "}}}}}")
	f.Add(overlayHead + "components: {mine: {kind: binary, always: true, archive: tar.gz, address: 'https://h/{arch}', members: [{path: a/b, name: b}], versions: {v1: {}}}}")
	f.Add(overlayHead + "images: {\"registry.k8s.io/pause:3.10\": \"sha256:" + hexA + "\"}")
	f.Add(overlayHead + "components: {a: &a {versions: {v1: {images: [{name: x, reference: h.io/x:1}]}}}, b: *a}")
	f.Add("{[: ]}\n---\n- x: ~")
	f.Fuzz(func(t *testing.T, text string) {
		doc, problems := decode(strings.NewReader(text))
		if problems.Err() != nil {
			return
		}
		written, err := doc.Encode("")
		if err != nil {
			t.Fatal(err)
		}
		again, problems := decode(strings.NewReader(string(written)))
		if problems.Err() != nil {
			t.Fatalf("%v\n%s", problems, written)
		}
		twice, err := again.Encode("")
		if err != nil || string(twice) != string(written) {
			t.Errorf("%v\n%s\n%s", err, written, twice)
		}
	})
}
