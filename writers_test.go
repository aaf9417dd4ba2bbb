package kubexm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writers are the files that put something under a name on this machine, each with
// how it outlasts a kill and a loss of power. A file that others trust is made beside
// its name, synced, closed with the error looked at, and renamed. Who does it another
// way says why; a new one is added here on purpose.
var writers = map[string]string{
	"bundle/archive/lock.go":          "WriteFile: a process id in a lock's own file, for people",
	"bundle/archive/output.go":        "Rename: synced before, its folder after",
	"bundle/archive/stage.go":         "Rename: each file and folder synced before, the parent after",
	"bundle/archive/volume_join.go":   "Rename: synced before, its folder after",
	"bundle/archive/volume_output.go": "Rename: synced before, the first volume last, the folder after",
	"bundle/archive/volume_repair.go": "Rename: synced before, its folder after",
	"bundle/extract.go":               "Rename: not synced; a copy of what the archive holds, index.json last",
	"bundle/fetch/cache_put.go":       "CreateTemp Rename: synced before; a name that a crash loses costs a download",
	"cmd/configdoc/main.go":           "WriteFile: a maintainer's generator",
	"cmd/kubexm/bundle_resolve.go":    "CreateTemp Rename: synced before; a lost name leaves the old lock",
	"cmd/kubexm/config_init.go":       "WriteFile: a start for a person, who looks at it",
	"cmd/stepsdoc/main.go":            "WriteFile: a maintainer's generator",
	"cmd/versionsgen/main.go":         "WriteFile: a maintainer's generator",
	"cmd/versionsgen/write.go":        "WriteFile: a maintainer's generator",
	"installer/workdir.go":            "WriteFile: who holds the lock, for people",
	"steps/kubernetes/here.go":        "Rename: synced before; made anew from the cluster",
	"steps/pki/store.go":              "Rename: synced before; the key last, without which a pair is none",
	"steps/registryd/access.go":       "Rename: synced before; made anew where there is none",
	"steps/registryd/digests.go":      "Rename: synced before; asked of the registry where there is none",
}

// TestWritersAreKnown finds every call that makes or renames a file by name.
func TestWritersAreKnown(t *testing.T) {
	found := map[string]map[string]bool{}
	tree := os.DirFS(".")
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "build" || name != "." && strings.HasPrefix(d.Name(), ".") || isTestHelp(d.Name())):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			return err
		}
		for word := range writes(file) {
			if found[name] == nil {
				found[name] = map[string]bool{}
			}
			found[name][word] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for name, words := range found {
		got[name] = strings.Join(slices.Sorted(maps.Keys(words)), " ")
	}
	for name, how := range writers {
		want[name], _, _ = strings.Cut(how, ":")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("who writes files by name (-listed in writers_test.go +found):\n%s", d)
	}
}

// writes gives the functions of package os, and of its Root, that a file calls to
// put something under a name.
func writes(file *ast.File) map[string]bool {
	words := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on, _ := f.X.(*ast.Ident)
		root, _ := f.X.(*ast.SelectorExpr)
		if on != nil && on.Name == "os" && slices.Contains([]string{"WriteFile", "Create", "CreateTemp", "Rename"}, f.Sel.Name) ||
			root != nil && root.Sel.Name == "root" && f.Sel.Name == "Rename" {
			words[f.Sel.Name] = true
		}
		return true
	})
	return words
}
