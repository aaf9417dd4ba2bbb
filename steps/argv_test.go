package steps_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestArgvLaw checks that no shell reads text that was composed at run time. A command is
// an argv. connector.Quote alone produces lines for a shell. A script is a constant, and
// values are its arguments. The test must detect all violations in a fixture file.
func TestArgvLaw(t *testing.T) {
	dir, err := filepath.Abs("etcd")
	if err != nil {
		t.Fatal(err)
	}
	bad := `package etcd

import (
	"context"
	"fmt"
	"os/exec"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

const good = "echo \"$1\""

func through(ctx context.Context, h *steps.Host, script string) error {
	_, err := h.Exec(ctx, "sh", "-c", "set -e\n"+script) // as good as its callers
	return err
}

func law(ctx context.Context, h *steps.Host, name string, s *ssh.Session) {
	_ = through(ctx, h, good)                                         // fine
	_ = through(ctx, h, "echo "+name)                                 // bad
	_, _ = h.Exec(ctx, "sh", "-c", good, "sh", name)                  // fine
	_, _ = h.Exec(ctx, "sh", "-c", fmt.Sprintf("echo %s", name))      // bad
	_, _ = h.Run(ctx, runner.Cmd{Argv: []string{"bash", "-ec", name}}) // bad
	argv := append([]string{"chroot", "/x"}, "sh", "-c", name)        // bad
	argv = append(argv, "sh", "-c")                                   // bad
	_, _ = h.Exec(ctx, append(argv, name)...)
	j := runner.Job{Script: name} // bad
	j.Script = "echo " + name     // bad
	_ = exec.Command("sh", "-c", name) // bad
	_ = s.Run("echo " + name)          // bad
	_ = s.Start(good)                  // fine
	f := through                       // bad
	_ = f(ctx, h, name)
	quoted := "'" + name + "'\\''" // bad
	_ = quoted
	_ = j
}
`
	var want []int
	for i, l := range strings.Split(bad, "\n") {
		if strings.HasSuffix(l, "// bad") {
			want = append(want, i+1)
		}
	}
	found := argvFindings(t, map[string][]byte{filepath.Join(dir, "zz_bad.go"): []byte(bad)})
	var got []int
	for _, f := range found {
		if !strings.Contains(f, "zz_bad.go:") {
			t.Error(f)
			continue
		}
		var n int
		if _, err := fmt.Sscanf(f[strings.LastIndex(f, "zz_bad.go:")+len("zz_bad.go:"):], "%d", &n); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		got = append(got, n)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("found in lines %v, want %v:\n%s", got, want, strings.Join(found, "\n"))
	}
}

// TestTemplatesRunNoShell checks that templates of unit files do not pass inserted values
// to a shell.
func TestTemplatesRunNoShell(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(name)) != "templates" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i, l := range strings.Split(string(text), "\n") {
			if shellWord.MatchString(l) && strings.Contains(l, "{{") {
				t.Errorf("%s:%d: a shell reads what is filled in: %s", name, i+1, l)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	shellWord  = regexp.MustCompile(`\b(sh|bash|dash|ash)\s+-[a-z]*c\b`)
	scriptFlag = regexp.MustCompile(`^-[leuxi]*c$`)
)

// argvFindings checks the module's code, without its tests, and returns the violations.
func argvFindings(t *testing.T, overlay map[string][]byte) []string {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports, Overlay: overlay,
	}, "./...", "../installer/...", "../registry/...", "../cmd/kubexm/...")
	if err != nil {
		t.Fatal(err)
	}
	l := &argvLaw{params: map[param]bool{}, seen: map[string]bool{}, calls: map[string]int{}}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		if !strings.HasSuffix(p.Name, "test") { // what tests are made of
			l.pkgs = append(l.pkgs, p)
		}
	}
	if len(l.pkgs) < 20 {
		t.Fatalf("%d packages were read", len(l.pkgs))
	}
	for _, p := range l.pkgs {
		for id, obj := range p.TypesInfo.Uses {
			if f, ok := obj.(*types.Func); ok && id.Name == f.Name() {
				l.calls[f.FullName()]++
			}
		}
	}
	for grown := -1; grown != len(l.params); { // a parameter that is a script makes its callers givers of scripts
		grown = len(l.params)
		l.found = nil
		clear(l.seen)
		for _, p := range l.pkgs {
			for _, f := range p.Syntax {
				l.file(p, f)
			}
		}
	}
	slices.Sort(l.found)
	return l.found
}

// param is a parameter of a function of this module, by the function's full name:
// packages know each other's functions by export data, as other objects.
type param struct {
	fn    string
	index int
}

type argvLaw struct {
	pkgs   []*packages.Package
	params map[param]bool // that shells read
	found  []string
	seen   map[string]bool
	calls  map[string]int // of functions, by their full names
}

func (l *argvLaw) say(p *packages.Package, at ast.Node, what string) {
	f := p.Fset.Position(at.Pos()).String() + ": " + what
	if !l.seen[f] {
		l.seen[f] = true
		l.found = append(l.found, f)
	}
}

func (l *argvLaw) file(p *packages.Package, f *ast.File) {
	for _, d := range f.Decls {
		fn, _ := d.(*ast.FuncDecl)
		called := map[*ast.Ident]bool{}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				l.list(p, fn, n.Elts)
				l.job(p, fn, n)
			case *ast.CallExpr:
				l.list(p, fn, n.Args)
				l.call(p, fn, n, called)
			case *ast.AssignStmt:
				l.assign(p, fn, n)
			case *ast.Ident:
				l.value(p, n, called)
			case *ast.BasicLit:
				if n.Kind == token.STRING && strings.Contains(constant(p, n), `'\''`) && !strings.HasSuffix(p.Fset.Position(n.Pos()).Filename, "steps/connector/quote.go") {
					l.say(p, n, "only connector.Quote quotes")
				}
			}
			return true
		})
	}
}

// list finds scripts in the argv of a command.
func (l *argvLaw) list(p *packages.Package, fn *ast.FuncDecl, words []ast.Expr) {
	for i, w := range words {
		if !scriptFlag.MatchString(constant(p, w)) {
			continue
		}
		if i+1 == len(words) {
			l.say(p, w, "what follows "+constant(p, w)+" has to stand beside it: else nobody sees that it is a constant")
			continue
		}
		l.script(p, fn, words[i+1])
	}
}

// job checks a job's script.
func (l *argvLaw) job(p *packages.Package, fn *ast.FuncDecl, lit *ast.CompositeLit) {
	if !strings.HasSuffix(p.TypesInfo.TypeOf(lit).String(), "steps/runner.Job") {
		return
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Script" {
				l.script(p, fn, kv.Value)
			}
		}
	}
}

func (l *argvLaw) assign(p *packages.Package, fn *ast.FuncDecl, a *ast.AssignStmt) {
	for i, left := range a.Lhs {
		s, ok := left.(*ast.SelectorExpr)
		if ok && s.Sel.Name == "Script" && strings.HasSuffix(p.TypesInfo.TypeOf(s.X).String(), "steps/runner.Job") && i < len(a.Rhs) {
			l.script(p, fn, a.Rhs[i])
		}
	}
}

// call checks the arguments of functions whose parameters are scripts, and the lines that
// are sent to a shell over SSH.
func (l *argvLaw) call(p *packages.Package, fn *ast.FuncDecl, c *ast.CallExpr, called map[*ast.Ident]bool) {
	var id *ast.Ident
	switch f := c.Fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return
	}
	f, ok := p.TypesInfo.Uses[id].(*types.Func)
	if !ok {
		return
	}
	called[id] = true
	for i, a := range c.Args {
		if l.params[param{f.FullName(), i}] {
			l.script(p, fn, a)
		}
	}
	if strings.HasPrefix(f.FullName(), "(*golang.org/x/crypto/ssh.Session).") && slices.Contains([]string{"Run", "Start", "Output", "CombinedOutput"}, f.Name()) && !l.quoted(p, c.Args[0]) {
		l.say(p, c, "the line for the host's shell is not made by connector.Quote")
	}
}

// quoted reports whether e consists of constants and results of connector.Quote.
func (l *argvLaw) quoted(p *packages.Package, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return l.quoted(p, e.X) && l.quoted(p, e.Y)
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		f, ok := p.TypesInfo.Uses[s.Sel].(*types.Func)
		return ok && strings.HasSuffix(f.FullName(), "steps/connector.Quote")
	}
	return p.TypesInfo.Types[e].Value != nil
}

// value finds functions whose parameters are scripts where they are used as values: their
// arguments cannot be checked then.
func (l *argvLaw) value(p *packages.Package, id *ast.Ident, called map[*ast.Ident]bool) {
	f, ok := p.TypesInfo.Uses[id].(*types.Func)
	if !ok || called[id] {
		return
	}
	for i := range f.Signature().Params().Len() {
		if l.params[param{f.FullName(), i}] {
			l.say(p, id, f.Name()+" takes a script, and is used as a value")
		}
	}
}

// script requires e to be a constant, or a parameter whose callers pass constants.
func (l *argvLaw) script(p *packages.Package, fn *ast.FuncDecl, e ast.Expr) {
	if p.TypesInfo.Types[e].Value != nil {
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		l.script(p, fn, e.X)
		l.script(p, fn, e.Y)
		return
	case *ast.ParenExpr:
		l.script(p, fn, e.X)
		return
	case *ast.Ident:
		if i := parameter(p, fn, e); i >= 0 && !written(p, fn, e) {
			// Of a function that nobody calls by its name nobody knows what it is given.
			if f, ok := p.TypesInfo.Defs[fn.Name].(*types.Func); ok && l.calls[f.FullName()] > 0 {
				l.params[param{f.FullName(), i}] = true
				return
			}
		}
	}
	l.say(p, e, "a shell reads text that is no constant: give it as an argument of the script")
}

// parameter returns the index of the parameter of fn that e is, or -1.
func parameter(p *packages.Package, fn *ast.FuncDecl, e *ast.Ident) int {
	if fn == nil {
		return -1
	}
	f, ok := p.TypesInfo.Defs[fn.Name].(*types.Func)
	if !ok {
		return -1
	}
	for i := range f.Signature().Params().Len() {
		if p.TypesInfo.Uses[e] == f.Signature().Params().At(i) {
			return i
		}
	}
	return -1
}

// written reports whether fn assigns another value to a parameter.
func written(p *packages.Package, fn *ast.FuncDecl, e *ast.Ident) bool {
	obj, found := p.TypesInfo.Uses[e], false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				id, ok := left.(*ast.Ident)
				found = found || ok && p.TypesInfo.Uses[id] == obj
			}
		case *ast.UnaryExpr:
			id, ok := n.X.(*ast.Ident)
			found = found || n.Op == token.AND && ok && p.TypesInfo.Uses[id] == obj
		}
		return true
	})
	return found
}

// constant returns the text of a constant string, or "".
func constant(p *packages.Package, e ast.Expr) string {
	if v := p.TypesInfo.Types[e].Value; v != nil {
		if s := v.ExactString(); len(s) > 1 && s[0] == '"' {
			return unquote(s)
		}
	}
	return ""
}

func unquote(s string) string {
	var out string
	if _, err := fmt.Sscanf(s, "%q", &out); err != nil {
		return ""
	}
	return out
}
