package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// source is what is read from the code of steps.
type source struct {
	does  map[string]string // step → comment of the function that returns it
	lists map[string]string // list of resources, as Go expression → the step that applies it
	gone  map[string]string // step that removes a list → that list
}

var stepName = regexp.MustCompile(`^[a-z]+\.[a-z0-9-]+$`)

// read parses the packages under a folder.
func read(root string) (source, error) {
	s := source{does: map[string]string{}, lists: map[string]string{}, gone: map[string]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.file(filepath.Dir(path), f)
		return nil
	})
	return s, err
}

// file reads one file. A function returns a step if it contains the step's name.
func (s source) file(dir string, f *ast.File) {
	for _, d := range f.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				s.made(d, literal(n))
			case *ast.CallExpr:
				s.list(dir, n)
			}
			return true
		})
	}
}

func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(l.Value)
	if err != nil || !stepName.MatchString(strings.TrimSuffix(text, "-")) {
		return ""
	}
	if strings.HasSuffix(text, "-") {
		return text + "NAME" // a step for each of several objects
	}
	return text
}

// made records the comment of d for the step that it returns; the first function counts.
func (s source) made(d *ast.FuncDecl, name string) {
	if name == "" || !d.Name.IsExported() || s.does[name] != "" {
		return
	}
	s.does[name] = sentence(d.Name.Name, d.Doc.Text())
}

// sentence converts a Go comment to a sentence without the function's name.
func sentence(function, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	text = strings.TrimSpace(strings.TrimPrefix(text, function))
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// list records the steps that apply and remove a list of resources.
func (s source) list(dir string, c *ast.CallExpr) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) < 2 || types.ExprString(sel.X) != "op" {
		return
	}
	name, what := literal(c.Args[0]), dir+": "+types.ExprString(c.Args[1])
	if name == "" {
		if b, ok := c.Args[0].(*ast.BinaryExpr); ok {
			name = literal(b.X)
		}
	}
	if name == "" {
		return
	}
	switch sel.Sel.Name {
	case "Ensure", "EnsureOn":
		if s.lists[what] == "" {
			s.lists[what] = name
		}
	case "Remove", "RemoveOn":
		s.gone[name] = what
	}
}

// inverses maps each step that applies a list to the step that removes it.
func (s source) inverses() map[string]string {
	out := map[string]string{}
	for gone, what := range s.gone {
		if want := s.lists[what]; want != "" {
			out[want] = gone
		}
	}
	return out
}
