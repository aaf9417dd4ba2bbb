package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRaceNamesConcurrentPackages: `make race` looks at the packages whose product
// code is concurrent, at each of them and at no other.
func TestRaceNamesConcurrentPackages(t *testing.T) {
	named := words(t, "RACE")
	for i, folder := range named {
		named[i] = strings.TrimPrefix(folder, "./")
	}
	concurrent := concurrentIn(t, os.DirFS("."), slices.Collect(maps.Keys(kubexm.folders)))
	for folder, why := range concurrent {
		if !slices.Contains(named, folder) {
			t.Errorf("the Makefile's RACE does not name ./%s: %s", folder, why)
		}
	}
	for _, folder := range named {
		if concurrent[folder] == "" {
			t.Errorf("the Makefile's RACE names ./%s, whose product code has no concurrency", folder)
		}
	}
}

// TestConcurrentFindsAll runs the same look over files of each kind.
func TestConcurrentFindsAll(t *testing.T) {
	got := concurrentIn(t, os.DirFS("testdata/concurrent"), []string{"bundle", "cmd", "installer", "manifest", "registry", "steps/steptest", "versions"})
	want := map[string]string{
		"bundle":    `bundle/bundle.go:5: a go statement`,
		"cmd":       `cmd/cmd.go:3: imports "sync/atomic"`,
		"installer": `installer/installer.go:3: imports "golang.org/x/sync/errgroup"`,
		"registry":  `registry/registry.go:3: imports "sync"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// concurrentIn gives the folders of product code with concurrency, each with the
// first place of it.
func concurrentIn(t *testing.T, tree fs.FS, folders []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, folder := range folders {
		if topOf(folder) == "testdata" || isTestHelp(folder) {
			continue
		}
		names, err := fs.Glob(tree, path.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || out[folder] != "" {
				continue
			}
			source, err := fs.ReadFile(tree, name)
			if err != nil {
				t.Fatal(err)
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				why := ""
				switch n := n.(type) {
				case *ast.GoStmt:
					why = "a go statement"
				case *ast.ImportSpec:
					if slices.Contains([]string{`"sync"`, `"sync/atomic"`, `"golang.org/x/sync/errgroup"`}, n.Path.Value) {
						why = "imports " + n.Path.Value
					}
				}
				if why != "" && out[folder] == "" {
					out[folder] = fmt.Sprintf("%s:%d: %s", name, files.Position(n.Pos()).Line, why)
				}
				return true
			})
		}
	}
	return out
}

// TestMustRunNamesTests: a test that was renamed would fall off the list unseen.
func TestMustRunNamesTests(t *testing.T) {
	lacking := words(t, "MUST_RUN")
	if len(lacking) == 0 {
		t.Fatal("the Makefile's MUST_RUN is empty")
	}
	for folder := range kubexm.folders {
		names, err := fs.Glob(os.DirFS("."), path.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lacking = slices.DeleteFunc(lacking, func(test string) bool {
				return strings.Contains(string(source), "\nfunc "+test+"(t *testing.T)")
			})
		}
	}
	for _, test := range lacking {
		t.Errorf("the Makefile's MUST_RUN names %s, and there is no such test", test)
	}
}

// words gives the words of a variable of the Makefile.
func words(t *testing.T, variable string) []string {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + variable + ` := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile sets no %s", variable)
	}
	return strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " "))
}
