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

// Golden compares got with the file testdata/NAME of the test's package. With update it
// writes the file.
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
		t.Fatalf("%v: write it with go test -update", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got); update it with go test -update:\n%s", path, d)
	}
}

// YAML parses all documents of a text. An invalid document, or a duplicate key, fails the
// test.
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
