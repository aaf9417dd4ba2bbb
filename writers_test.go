package kubexm_test

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writers are the files that put something under a name on this machine, each with
// how it outlasts a kill and a loss of power. A file that others trust is written by
// package durable: beside its name, synced, closed with the error looked at, renamed, and
// its folder synced. Who does it another way says why; a new one is added here on purpose.
var writers = map[string]string{
	"bundle/archive/lock.go":          "WriteFile: a process id in a lock's own file, for people",
	"bundle/archive/output.go":        "OpenFile Rename: exclusive, filled in any order; synced before, its folder after",
	"bundle/archive/journal.go":       "OpenFile: the journal of an unfinished archive, appended to; what it says is checked",
	"bundle/archive/signatures.go":    "OpenFile: a slot within an archive, in place; half of one is no obstacle to the next",
	"bundle/archive/staged.go":        "OpenFile: frames that wait for their turn in an unfinished archive; checked when they move",
	"bundle/archive/stage.go":         "OpenFile Rename: each file and folder synced before, the parent after",
	"bundle/archive/volume_join.go":   "Rename: synced before, its folder after",
	"bundle/archive/volume_output.go": "Rename: synced before, the first volume last, the folder after",
	"bundle/archive/volume_repair.go": "Rename: synced before, its folder after",
	"bundle/fetch/cache_put.go":       "CreateTemp OpenFile Rename: a stream, synced before; a name that a crash loses costs a download",
	"cmd/docgen/main.go":              "WriteFile: a maintainer's generator",
	"cmd/kubexm/config_init.go":       "WriteFile: a start for a person, who looks at it",
	"cmd/versionsgen/main.go":         "WriteFile: a maintainer's generator",
	"cmd/versionsgen/write.go":        "WriteFile: a maintainer's generator",
	"manifest/durable/temp_file.go":   "OpenFile: the file beside, exclusive",
	"manifest/durable/file.go":        "Rename: synced before, its folder after",
	"installer/audit/log.go":          "OpenFile: added to; a line that was cut off is closed by the next run",
	"installer/record.go":             "OpenFile: added to; a line that was cut off counts for nothing",
	"installer/run.go":                "OpenFile: a run's own journal, exclusive; head and folder synced before a host is touched",
	"installer/workdir.go":            "WriteFile: who holds the lock, for people",
}

// TestWritersAreKnown finds every call that makes or renames a file by name.
func TestWritersAreKnown(t *testing.T) {
	found := map[string]map[string]bool{}
	eachSource(t, func(s source) {
		for word := range writes(s.File) {
			if found[s.name] == nil {
				found[s.name] = map[string]bool{}
			}
			found[s.name][word] = true
		}
	}, ".")
	got, want := map[string]string{}, map[string]string{}
	for name, words := range found {
		got[name] = strings.Join(slices.Sorted(maps.Keys(words)), " ")
	}
	for name, how := range writers {
		want[name], _, _ = strings.Cut(how, ":")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("who writes files by name (-listed in writers_test.go +found):\n%s", d)
	}
}

// writes gives the functions of package os, and the methods that os.Root shares with
// it, that a file calls to put something under a name. A file that is opened to be
// written, or made, counts; one that is only read is opened by os.Open.
func writes(file *ast.File) map[string]bool {
	imported := map[string]bool{}
	for _, i := range file.Imports {
		name := path.Base(strings.Trim(i.Path.Value, `"`))
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = true
	}
	words := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on, _ := f.X.(*ast.Ident)
		known := []string{"WriteFile", "Create", "CreateTemp", "OpenFile", "Rename", "Link"}
		if on == nil || !imported[on.Name] { // a method; a client of something has a Create too
			known = []string{"OpenFile", "Rename"}
		} else if on.Name != "os" {
			return true
		}
		if slices.Contains(known, f.Sel.Name) {
			words[f.Sel.Name] = true
		}
		return true
	})
	return words
}
