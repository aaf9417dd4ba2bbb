package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// kinds are the fields of package manifest that say of which kind a part is.
var kinds = []string{"Etcd.Type", "Network.Plugin", "Registry.Type", "Runtime.Type"}

// TestPartsAreAskedFor: what follows from the kind of a part is asked of manifest/part,
// where one more kind is a row. The simulator knows for itself what there is.
func TestPartsAreAskedFor(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, foldersThatRead(t, "cmd", "installer", "steps", "registry", "bundle", "packaging", "versions")...)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		k := kindsOf(p.TypesInfo)
		reads += k.reads
		for _, e := range k.compared(p.Syntax) {
			at := p.Fset.Position(e.Pos())
			name, err := filepath.Rel(root, at.Filename)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s:%d: a part's kind is compared: ask manifest/part", name, at.Line)
		}
	}
	if reads == 0 {
		t.Errorf("%d packages read no part's kind: nothing was looked at", len(pkgs))
	}
}

// foldersThatRead gives the packages of product code that read some field of such a name:
// to know the types of all takes long.
func foldersThatRead(t *testing.T, tops ...string) (out []string) {
	t.Helper()
	read := regexp.MustCompile(`\.(Type|Plugin)\b`)
	for _, top := range tops {
		err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			folder := "./" + filepath.Dir(name)
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || isTestHelp(d.Name())):
				return fs.SkipDir
			case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || slices.Contains(out, folder):
				return nil
			}
			source, err := os.ReadFile(name)
			if err == nil && read.Match(source) {
				out = append(out, folder)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestKindsComparedAreFound runs the same look over each form of it.
func TestKindsComparedAreFound(t *testing.T) {
	const source = `package manifest
type Etcd struct{ Type string }
type Network struct{ Plugin string }
type Registry struct{ Type string }
type Runtime struct{ Type string }
type Bundle struct{ Type string }
type Spec struct { Etcd Etcd; Network *Network; Registry Registry; Runtime Runtime; Bundle Bundle }
const calico = "calico"
func same(a, b string) bool { return a == b }
func or(vs ...string) string { return vs[0] }
func f(s Spec, r Runtime, roles map[string]bool, name string) bool {
	if s.Etcd.Type == "kubexm" { // found
		return true
	}
	if "" != s.Registry.Type { // found
		return true
	}
	if roles[s.Etcd.Type] { // found
		return true
	}
	switch e := s.Network; e.Plugin { // found
	}
	switch r.Type { // found
	}
	n := s.Network
	if n.Plugin == calico { // found
		return true
	}
	kind := s.Registry.Type
	var second = kind
	if second != "" { // found
		return true
	}
	third := or(r.Type, "containerd")
	switch third { // found
	}
	switch {
	case string(r.Type) == "docker": // found
	}
	switch name {
	case r.Type:
	}
	roles[name] = s.Bundle.Type == "x"
	return n.Plugin == name && same(kind, name)
}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := (&types.Config{}).Check(manifestPath, set, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, c := range file.Comments {
		want = append(want, fmt.Sprint(set.Position(c.Pos()).Line))
	}
	for _, e := range kindsOf(info).compared([]*ast.File{file}) {
		got = append(got, fmt.Sprint(set.Position(e.Pos()).Line))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}

const manifestPath = "github.com/mensylisir/kubexm/manifest"

// kindsRead knows the expressions of one package that are the kind of a part.
type kindsRead struct {
	info  *types.Info
	held  map[types.Object]bool // variables that were given one
	reads int                   // of the fields
}

func kindsOf(info *types.Info) *kindsRead {
	k := &kindsRead{info: info, held: map[types.Object]bool{}}
	for s := range info.Selections {
		if k.isField(s) {
			k.reads++
		}
	}
	return k
}

func (k *kindsRead) isField(s *ast.SelectorExpr) bool {
	of := k.info.Selections[s]
	if of == nil || of.Kind() != types.FieldVal {
		return false
	}
	t := of.Recv()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == manifestPath && slices.Contains(kinds, named.Obj().Name()+"."+s.Sel.Name)
}

// is reports whether e is a kind: the field, a variable that holds it, or what a call makes
// of one beside nothing but constants, such as a conversion or a default.
func (k *kindsRead) is(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return k.isField(e)
	case *ast.Ident:
		return k.held[k.info.Uses[e]]
	case *ast.CallExpr:
		return types.Identical(k.info.TypeOf(e), types.Typ[types.String]) && slices.ContainsFunc(e.Args, k.is) &&
			!slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return !k.is(a) && !k.isConstant(a) })
	}
	return false
}

func (k *kindsRead) isConstant(e ast.Expr) bool { return k.info.Types[e].Value != nil }

// gather finds the variables that hold a kind, and reports whether there are more than before.
func (k *kindsRead) gather(files []*ast.File) bool {
	before := len(k.held)
	give := func(to, from ast.Expr) {
		id, ok := to.(*ast.Ident)
		if !ok || !k.is(from) {
			return
		}
		for _, o := range []types.Object{k.info.Defs[id], k.info.Uses[id]} {
			if o != nil {
				k.held[o] = true
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i := range n.Lhs {
					if len(n.Lhs) == len(n.Rhs) {
						give(n.Lhs[i], n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i := range n.Values {
					if len(n.Names) == len(n.Values) {
						give(n.Names[i], n.Values[i])
					}
				}
			}
			return true
		})
	}
	return len(k.held) > before
}

// compared gives the places where a kind is compared with a constant, decides a switch, or
// looks something up.
func (k *kindsRead) compared(files []*ast.File) (out []ast.Node) {
	for k.gather(files) {
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (k.is(n.X) && k.isConstant(n.Y) || k.is(n.Y) && k.isConstant(n.X)) {
					out = append(out, n)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && k.is(n.Tag) {
					out = append(out, n.Tag)
				}
			case *ast.IndexExpr:
				if k.is(n.Index) {
					out = append(out, n)
				}
			}
			return true
		})
	}
	return out
}
