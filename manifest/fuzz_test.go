package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzDecode: no document brings the reader down, and what decodes without
// errors means the same when its public form is read.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"../cmd/kubexm/starters/*.yaml", "testdata/*.yaml", "../testdata/configs/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	mistakes, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range mistakes {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i, x := range a.Files {
			if i%8 == 0 { // each config stands before its problems: some of them are enough
				f.Add(x.Data)
			}
		}
	}
	f.Add([]byte(withSecrets))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, problems := Decode(bytes.NewReader(text))
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 || p.Line > bytes.Count(text, []byte("\n"))+1+bytes.Count(text, []byte("\r"))+3*bytes.Count(text, []byte("\xe2\x80"))+bytes.Count(text, []byte("\xc2\x85")) {
				t.Errorf("a problem without message or place: %+v", p)
			}
		}
		if (c == nil) != (problems.Err() != nil) {
			t.Fatalf("cluster %v, problems %v", c != nil, problems)
		}
		_, _ = DecodeSources(bytes.NewReader(text))
		if c == nil {
			return
		}
		public, err := c.Public()
		if err != nil {
			t.Fatal(err)
		}
		again, problems := Decode(bytes.NewReader(public))
		if err := problems.Err(); err != nil {
			t.Fatalf("its public form has errors: %v\n%s", err, public)
		}
		if second, err := again.Public(); err != nil || !bytes.Equal(public, second) {
			t.Fatalf("its public form read back differs: %v\n%s\n---\n%s", err, public, second)
		}
	})
}
