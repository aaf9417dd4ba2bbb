package kubexm_test

import (
	"go/ast"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstMasters are the files that may mean the first master of the config by its place,
// and why: kubeadm init makes the cluster there, and nowhere else.
var firstMasters = map[string]string{
	"installer/plan/lead.go":      "where kubeadm init runs",
	"installer/state/replaced.go": "where kubeadm init would make a second cluster",
	"steps/kubeadm/preserve.go":   "what created preserved etcd data",
	"installer/site/skip.go":      "the same",
}

// TestAnyMasterIsTheWayIn: nobody goes to the first master because it is the first. A
// plan says Scope.Lead, a command installer.ReachLead.
func TestAnyMasterIsTheWayIn(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(s source) {
		for _, l := range firstMasterTaken(s) {
			if used[s.name] = true; firstMasters[s.name] == "" {
				t.Errorf("%s: the first master is taken for the way in: use Scope.Lead or installer.ReachLead", l)
			}
		}
	}, "cmd", "installer", "steps")
	for name := range firstMasters {
		if !used[name] {
			t.Errorf("%s takes no first master any more: take it off the list", name)
		}
	}
}

// TestFirstMastersAreFound runs the same look over each form of it.
func TestFirstMastersAreFound(t *testing.T) {
	const text = `package x
func f(c *Cluster, s Scope) {
	_ = c.HostsWith(manifest.RoleMaster)[0]
	masters, store := c.HostsWith(manifest.RoleMaster), 1
	_ = masters[0]
	_ = masters[:1]
	_ = masters[1]
	workers := c.HostsWith(manifest.RoleWorker)
	_ = workers[0]
	_ = s.First(manifest.RoleMaster)
	_ = masters[:min(1, len(masters))]
	if m := slices.Clone(s.Role(manifest.RoleMaster)); len(m) > 0 {
		_ = m[0]
	}
}`
	got := firstMasterTaken(parsed(t, "x.go", text))
	if d := cmp.Diff([]string{"x.go:3", "x.go:5", "x.go:6", "x.go:10", "x.go:11", "x.go:13"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// firstMasterTaken gives the places where the first of the masters is taken out of a list
// of them: directly, or from a variable that the same function filled so.
func firstMasterTaken(file source) []string {
	var out []string
	found := func(n ast.Node) { out = append(out, file.at(n)) }
	for _, d := range file.Decls {
		masters := map[string]bool{}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, right := range n.Rhs {
					if id, ok := n.Lhs[i].(*ast.Ident); ok && listsMasters(right) {
						masters[id.Name] = true
					}
				}
			case *ast.IndexExpr:
				if l, ok := n.Index.(*ast.BasicLit); ok && l.Value == "0" && isMasters(n.X, masters) {
					found(n)
				}
			case *ast.SliceExpr:
				if n.Low == nil && n.High != nil && isMasters(n.X, masters) {
					found(n)
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "First" && len(n.Args) == 1 && isMasterRole(n.Args[0]) {
					found(n)
				}
			}
			return true
		})
	}
	return slices.Compact(out)
}

func isMasters(e ast.Expr, masters map[string]bool) bool {
	id, ok := e.(*ast.Ident)
	return ok && masters[id.Name] || listsMasters(e)
}

// listsMasters reports whether e calls something with the role of masters, or with a call
// that does.
func listsMasters(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	return ok && slices.ContainsFunc(c.Args, func(a ast.Expr) bool { return isMasterRole(a) || listsMasters(a) })
}

func isMasterRole(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "RoleMaster"
}
