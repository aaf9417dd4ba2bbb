package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// source is one parsed Go file.
type source struct {
	name  string // with slashes, from the root of the module
	files *token.FileSet
	*ast.File
}

// parsed parses a Go file; a text that is none ends the test.
func parsed(t *testing.T, name, text string) source {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{name: name, files: files, File: file}
}

// at gives the place of n, as file:line.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.files.Position(n.Pos()).Line)
}

// eachSource calls look with each Go file of the product below some folders. Tests, and
// folders of testdata, of help for tests and of what is built are passed over, unless they
// are among folders themselves.
func eachSource(t *testing.T, look func(s source), folders ...string) {
	t.Helper()
	tree := os.DirFS(".")
	for _, folder := range folders {
		err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name == folder && d.IsDir():
				return nil
			case d.IsDir() && (d.Name() == "testdata" || name == "build" || strings.HasPrefix(d.Name(), ".") || isTestHelp(d.Name())):
				return fs.SkipDir
			case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			look(parsed(t, name, string(text)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
