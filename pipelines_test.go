package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPipelinesAreNotToldByName: what is done about a pipeline follows from its
// properties. Who compares its name has to be found again for each new operation.
func TestPipelinesAreNotToldByName(t *testing.T) {
	tree := os.DirFS(".")
	names := pipelineNames(t, tree)
	if !slices.Contains(names, "create") || len(names) < 6 {
		t.Fatalf("installer/pipeline has the pipelines %q", names)
	}
	for _, top := range []string{"cmd", "installer", "testdata/scenarios"} {
		err := fs.WalkDir(tree, top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			source, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			for _, l := range comparisons(t, name, source, names) {
				t.Errorf("%s: a pipeline is told by its name: give plan.Pipeline a property", l)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestComparisonsAreFound runs the same look over each form of them.
func TestComparisonsAreFound(t *testing.T) {
	const source = `package x
func f(p struct{ Name string }) bool {
	if p.Name == "create" || "delete" != p.Name {
		return slices.Contains([]string{"other", "create"}, p.Name)
	}
	switch p.Name {
	case "other", "delete":
	}
	words := []string{"create"} // no comparison
	return p.Name == "other" || words == nil
}`
	got := comparisons(t, "x.go", []byte(source), []string{"create", "delete"})
	if d := cmp.Diff([]string{"x.go:3", "x.go:3", "x.go:4", "x.go:7"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// pipelineNames gives the names in the literals of plan.Pipeline.
func pipelineNames(t *testing.T, tree fs.FS) []string {
	t.Helper()
	files, err := fs.Glob(tree, "installer/pipeline/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			l, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if s, ok := l.Type.(*ast.SelectorExpr); !ok || s.Sel.Name != "Pipeline" {
				return true
			}
			for _, e := range l.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == "Name" {
					out = append(out, text(kv.Value))
				}
			}
			return true
		})
	}
	return out
}

// comparisons gives the places where a literal of one of these words is compared: with
// an operator, in a case, or as an argument's list.
func comparisons(t *testing.T, name string, source []byte, words []string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	look := func(es ...ast.Expr) {
		for _, e := range es {
			if slices.Contains(words, text(e)) {
				out = append(out, fmt.Sprintf("%s:%d", name, files.Position(e.Pos()).Line))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				look(n.X, n.Y)
			}
		case *ast.CaseClause:
			look(n.List...)
		case *ast.CallExpr:
			for _, a := range n.Args {
				if l, ok := a.(*ast.CompositeLit); ok {
					look(l.Elts...)
				}
			}
		}
		return true
	})
	return out
}

// text is the value of a literal of text; "" of all else.
func text(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(l.Value)
	return s
}
