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
	runScripts(t, scripts)
}

// TestStartersRun takes every starter through the first run; a short run every second one.
func TestStartersRun(t *testing.T) {
	all := templates
	if testing.Short() {
		all = nil
		for i := 0; i < len(templates); i += 2 {
			all = append(all, templates[i])
		}
	}
	for _, name := range all {
		t.Run(name, func(t *testing.T) { runScripts(t, []string{"testdata/starter.txtar"}, "STARTER="+name) })
	}
}

// runScripts runs scripts with some variables.
func runScripts(t *testing.T, files []string, vars ...string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, vars...)
			// The race detector has each command that ends wait a second for goroutines that
			// are left: that would be most of what the scripts take. The walk does the same.
			env.Vars = append(env.Vars, "GORACE=atexit_sleep_ms=100", "GOGC="+os.Getenv("GOGC"))
			env.Values[askedKey{}] = &asked{}
			return nil
		},
	})
}
