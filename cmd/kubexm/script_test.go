package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// update writes what the commands print now into the scripts' golden files.
var update = flag.Bool("update", false, "rewrite the golden files in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubexm":      func() { os.Exit(realMain()) },
		"kubexm-slow": func() { os.Exit(slowMain()) },
	})
}

// TestScripts runs the command as people do. Each script is a txtar archive of
// commands and the files they need; `go doc testscript` lists its words. A short run
// takes every second one: deriving a signing key from its password takes seconds under
// the race detector.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		all := scripts
		scripts = nil
		for i := 0; i < len(all); i += 2 {
			scripts = append(scripts, all[i])
		}
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			env.Values[askedKey{}] = &asked{}
			return nil
		},
	})
}
