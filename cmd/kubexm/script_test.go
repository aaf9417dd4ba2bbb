package main

import (
	"flag"
	"os"
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
// commands and the files they need; `go doc testscript` lists its words.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
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
