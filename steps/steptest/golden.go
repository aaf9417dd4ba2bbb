package steptest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// Golden compares got with the file testdata/NAME of the test's package, or with
// update writes it.
func Golden(t *testing.T, update bool, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is another (-want +got); go test -update takes it over:\n%s", path, d)
	}
}

// YAML reads every document of a text, and ends the test where one is not valid.
// A key that stands twice is not.
func YAML(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var docs []map[string]any
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		docs = append(docs, doc)
	}
}
