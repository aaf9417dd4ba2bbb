package manifest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest/document"
)

const module = "github.com/mensylisir/kubexm/"

// actors are the files of this package that act on the config; its others
// decode, check and describe it, which is no effect.
var actors = []string{"addon_form.go", "endpoint.go", "ranges.go", "registry_auth.go", "rewrite.go"}

// reads is what the command's code selects of this package's structs. The code
// is type-checked as it stands, with everything from elsewhere taken for empty:
// what a selector means on these structs does not need it, and a test that ran
// the go command would not run again when only the code it looks at has changed.
//
// A field is "Owner.Field". One that is selected from a variable is a head; from
// another field's value, a pair; one whose value goes on as a whole, to a
// variable, a call or a loop, escapes, and heads of its type may follow it.
type reads struct {
	fset   *token.FileSet
	pkgs   map[string]*types.Package
	head   map[string]bool
	pair   map[[2]string]bool
	escape map[string]bool
}

// readConfig reads the command and all that it imports of this module.
func readConfig(t *testing.T) *reads {
	t.Helper()
	r := &reads{
		fset: token.NewFileSet(), pkgs: map[string]*types.Package{},
		head: map[string]bool{}, pair: map[[2]string]bool{}, escape: map[string]bool{},
	}
	if _, err := r.Import(module + "cmd/kubexm"); err != nil {
		t.Fatal(err)
	}
	return r
}

// Import makes r the type checker's importer.
func (r *reads) Import(name string) (*types.Package, error) {
	if p, ok := r.pkgs[name]; ok {
		return p, nil
	}
	folder, own := strings.CutPrefix(name, module)
	if !own {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		r.pkgs[name] = p
		return p, nil
	}
	files, err := r.parse(filepath.Join("..", folder))
	if err != nil {
		return nil, err
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: r, Error: func(error) {}, FakeImportC: true}
	p, _ := conf.Check(name, r.fset, files, info) // its errors are those of what is taken for empty
	r.pkgs[name] = p
	for _, f := range files {
		if name != module+"manifest" || slices.Contains(actors, filepath.Base(r.fset.Position(f.Pos()).Filename)) {
			r.note(f, info)
		}
	}
	return p, nil
}

func (r *reads) parse(dir string) ([]*ast.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if ok, err := build.Default.MatchFile(dir, e.Name()); !ok || err != nil {
			continue
		}
		f, err := parser.ParseFile(r.fset, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// note records the selectors of one file.
func (r *reads) note(f *ast.File, info *types.Info) {
	written, followed := map[ast.Expr]bool{}, map[ast.Expr]bool{}
	var all []*ast.SelectorExpr
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				written[left] = n.Tok == token.ASSIGN
			}
		case *ast.SelectorExpr:
			if info.Selections[n] != nil {
				all = append(all, n)
			}
		}
		return true
	})
	for _, e := range all {
		steps := fieldSteps(info.Selections[e])
		if len(steps) == 0 || written[e] {
			continue
		}
		followed[base(e.X)] = true
		before := ""
		if x, ok := base(e.X).(*ast.SelectorExpr); ok && info.Selections[x] != nil {
			if s := fieldSteps(info.Selections[x]); len(s) > 0 && info.Selections[x].Kind() == types.FieldVal {
				before = s[len(s)-1]
			}
		}
		for _, s := range steps {
			if before == "" {
				r.head[s] = true
			} else {
				r.pair[[2]string{before, s}] = true
			}
			before = s
		}
	}
	for _, e := range all {
		if steps := fieldSteps(info.Selections[e]); len(steps) > 0 && !followed[e] && !written[e] {
			r.escape[steps[len(steps)-1]] = true
		}
	}
}

// base gives what a selector, an index or a star stands on.
func base(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return e
		}
	}
}

// fieldSteps gives the fields that a selection goes through, embedded ones too;
// a field of another package's struct is empty.
func fieldSteps(s *types.Selection) (steps []string) {
	t := s.Recv()
	for i, index := range s.Index() {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		structure, ok := t.Underlying().(*types.Struct)
		if !ok || s.Kind() != types.FieldVal && i == len(s.Index())-1 {
			return steps
		}
		f, step := structure.Field(index), ""
		if n, ok := t.(*types.Named); ok && f.Pkg() != nil && f.Pkg().Path() == module+"manifest" {
			step = n.Obj().Name() + "." + f.Name()
		}
		steps = append(steps, step)
		t = f.Type()
	}
	return steps
}

// missing gives the first field of a chain that nothing reads in its place, or
// nothing where all of it is read.
func (r *reads) missing(chain []string) string {
	for i, step := range chain {
		if i == 0 && r.head[step] {
			continue
		}
		if i > 0 && (r.pair[[2]string{chain[i-1], step}] || r.escape[chain[i-1]] && r.head[step]) {
			continue
		}
		return step
	}
	return ""
}

// fieldChains gives for every leaf of the config the fields that lead to it.
func fieldChains() map[string][]string {
	out := map[string][]string{}
	var walk func(t reflect.Type, path string, chain []string)
	walk = func(t reflect.Type, path string, chain []string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != argsType || t.Kind() == reflect.Map && t != anyMap {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == secretType || reflect.PointerTo(t).Implements(textType) {
			out[path] = chain
			return
		}
		for _, f := range document.Keys(t) {
			steps, holder := slices.Clone(chain), t
			for _, index := range f.Index {
				steps = append(steps, holder.Name()+"."+holder.Field(index).Name)
				holder = holder.Field(index).Type
			}
			walk(f.Type, document.Join(path, f.Name), steps)
		}
	}
	walk(reflect.TypeFor[Cluster](), "", nil)
	return out
}

// toldApart: the same struct in two places is read in one of them.
func toldApart(t *testing.T, r *reads, chains map[string][]string) {
	t.Helper()
	for _, c := range []struct {
		path string
		read bool
	}{
		{"spec.kubernetes.scheduler.extraArgs", true},
		{"spec.kubernetes.kubeProxy.extraArgs", false}, // kubeadm's kube-proxy takes no flags
		{"spec.runtime.containerd.dataDir", true},
		{"spec.runtime.docker.dataDir", false},
		{"spec.hosts.jumpHost.user", true},
		{"spec.monitoring.enabled", false},
	} {
		if len(chains[c.path]) == 0 {
			t.Errorf("%s is no leaf", c.path)
		}
		if m := r.missing(chains[c.path]); (m == "") != c.read {
			t.Errorf("%s: read is wanted %t, and what is missing is %q", c.path, c.read, m)
		}
	}
}
