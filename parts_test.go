package kubexm_test

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPartsAreAskedFor: what follows from the kind of a part is asked of manifest/part,
// where one more kind is a row. The simulator knows for itself what there is.
func TestPartsAreAskedFor(t *testing.T) {
	eachSource(t, func(s source) {
		for _, l := range kindsCompared(s) {
			t.Errorf("%s: a part's kind is compared: ask manifest/part", l)
		}
	}, "cmd", "installer", "steps", "registry", "bundle", "packaging", "versions")
}

// TestKindsComparedAreFound runs the same look over each form of it.
func TestKindsComparedAreFound(t *testing.T) {
	const text = `package x
func f(c *Cluster) bool {
	if c.Spec.Etcd.Type == "kubexm" || "" != c.Spec.Registry.Type {
		return roles[c.Spec.Etcd.Type] != ""
	}
	switch e := c.Spec.Network; e.Plugin {
	}
	switch c.Spec.Network.Plugin {
	}
	return c.Spec.Network.Plugin == name && c.Spec.Bundle.Type == "x"
}`
	got := kindsCompared(parsed(t, "x.go", text))
	if d := cmp.Diff([]string{"x.go:3: Etcd.Type", "x.go:3: Registry.Type", "x.go:4: Etcd.Type", "x.go:8: Network.Plugin"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// kindsCompared gives the places where such a field is compared with a word, decides a
// switch, or looks something up.
func kindsCompared(file source) []string {
	var out []string
	look := func(e ast.Expr) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return
		}
		of, ok := s.X.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if field := of.Sel.Name + "." + s.Sel.Name; slices.Contains([]string{"Etcd.Type", "Network.Plugin", "Registry.Type", "Runtime.Type"}, field) {
			out = append(out, file.at(e)+": "+field)
		}
	}
	ast.Inspect(file.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if _, word := n.Y.(*ast.BasicLit); word && (n.Op == token.EQL || n.Op == token.NEQ) {
				look(n.X)
			}
			if _, word := n.X.(*ast.BasicLit); word && (n.Op == token.EQL || n.Op == token.NEQ) {
				look(n.Y)
			}
		case *ast.SwitchStmt:
			look(n.Tag)
		case *ast.IndexExpr:
			look(n.Index)
		}
		return true
	})
	return out
}
