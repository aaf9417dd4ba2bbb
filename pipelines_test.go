package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPipelinesAreNotToldByName: what is done about a pipeline follows from its
// properties. Who compares its name has to be found again for each new operation.
func TestPipelinesAreNotToldByName(t *testing.T) {
	names := pipelineNames(t)
	if !slices.Contains(names, "create") || len(names) < 6 {
		t.Fatalf("installer/pipeline has the pipelines %q", names)
	}
	eachSource(t, func(s source) {
		for _, l := range comparisons(s, names) {
			t.Errorf("%s: a pipeline is told by its name: give plan.Pipeline a property", l)
		}
	}, "cmd", "installer", "installer/sitetest", "testdata/scenarios")
}

// TestComparisonsAreFound runs the same look over each form of them.
func TestComparisonsAreFound(t *testing.T) {
	const code = `package x
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
	got := comparisons(parsed(t, "x.go", code), []string{"create", "delete"})
	if d := cmp.Diff([]string{"x.go:3", "x.go:3", "x.go:4", "x.go:7"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// pipelineNames gives the names in the literals of plan.Pipeline.
func pipelineNames(t *testing.T) []string {
	t.Helper()
	var out []string
	eachSource(t, func(file source) {
		ast.Inspect(file.File, func(n ast.Node) bool {
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
	}, "installer/pipeline")
	return out
}

// comparisons gives the places where a literal of one of these words is compared: with
// an operator, in a case, or as an argument's list.
func comparisons(file source, words []string) []string {
	var out []string
	look := func(es ...ast.Expr) {
		for _, e := range es {
			if slices.Contains(words, text(e)) {
				out = append(out, file.at(e))
			}
		}
	}
	ast.Inspect(file.File, func(n ast.Node) bool {
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
