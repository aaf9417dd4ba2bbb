package manifest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestMistakes reads each NAME.yaml of testdata/mistakes and compares what is
// said about it with NAME.problems, one problem a line. Warnings that something
// is not built yet are left out: built_test.go has them.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no mistakes", err)
	}
	total := 0
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden := &txtar.Archive{Comment: a.Comment}
		for i, f := range a.Files {
			name, isConfig := strings.CutSuffix(f.Name, ".yaml")
			if !isConfig {
				continue
			}
			total++
			golden.Files = append(golden.Files, f)
			theme := strings.TrimSuffix(filepath.Base(file), ".txtar")
			t.Run(theme+"/"+name, func(t *testing.T) {
				got := problemLines(Check(bytes.NewReader(f.Data)))
				golden.Files = append(golden.Files, txtar.File{Name: name + ".problems", Data: []byte(got)})
				if *update {
					return
				}
				if got == "" {
					t.Error("nothing was found")
				}
				want := ""
				if i+1 < len(a.Files) && a.Files[i+1].Name == name+".problems" {
					want = string(a.Files[i+1].Data)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(golden), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if total < 60 {
		t.Errorf("%d mistakes are held, and 60 are promised", total)
	}
}

// problemLines gives the problems one a line, but for what is not built yet.
func problemLines(ps Problems) string {
	var b strings.Builder
	for _, p := range ps {
		if !strings.HasPrefix(p.Message, "accepted, not yet built") {
			b.WriteString(strings.TrimPrefix(p.String(), " ") + "\n")
		}
	}
	return b.String()
}
