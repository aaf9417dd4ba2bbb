package sbom

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"slices"
	"testing"
)

// TestProgram: every module once, with its checksum; what was replaced is what it
// was replaced by.
func TestProgram(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.6", Main: debug.Module{Path: "a.test/program"},
		Deps: []*debug.Module{
			{Path: "a.test/lib", Version: "v1.2.3", Sum: "h1:abc="},
			{Path: "a.test/old", Version: "v1.0.0", Replace: &debug.Module{Path: "b.test/new", Version: "v1.0.1", Sum: "h1:def="}},
		},
	}
	text, err := Program("program", "v1", info)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Program("program", "v1", info)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("%v, or other bytes of the same", err)
	}
	var doc cycloneDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var purls []string
	for _, c := range doc.Components {
		purls = append(purls, c.PURL)
	}
	if want := []string{"pkg:golang/stdlib@1.26.6", "pkg:golang/a.test/lib@v1.2.3", "pkg:golang/b.test/new@v1.0.1"}; !slices.Equal(purls, want) || !slices.Equal(doc.Dependencies[0].DependsOn, want) {
		t.Errorf("%q, %q", purls, doc.Dependencies)
	}
	if p := doc.Components[2].Properties; len(p) != 1 || p[0].Value != "h1:def=" {
		t.Errorf("%+v", p)
	}
	if other, err := Program("program", "v2", info); err != nil || bytes.Contains(other, []byte(doc.Serial)) {
		t.Errorf("another version has the same number: %v", err)
	}
}
