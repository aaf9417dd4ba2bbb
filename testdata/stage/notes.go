package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// The variables that a stage's programs are given.
const (
	deadlineEnv = "STAGE_DEADLINE"  // no scenario begins after it, in seconds since 1970
	flakesEnv   = "STAGE_FLAKES"    // a file: a line for each test that failed and then passed
	ranEnv      = "STAGE_RAN"       // a file: a line for each test of KUBEXM_MUST_RUN that ran
	mustRunEnv  = "KUBEXM_MUST_RUN" // the tests that must not be skipped, separated by spaces
)

// Notes are the files that stages tell the runner more in than their exit code.
// The path of a file may be empty: then nobody asked.
type Notes struct {
	Flakes string
	Ran    string
}

// NotesOf takes the files' names from the environment.
func NotesOf(getenv func(string) string) Notes {
	return Notes{Flakes: getenv(flakesEnv), Ran: getenv(ranEnv)}
}

// add appends lines to a file of notes.
func add(file string, lines ...string) error {
	if file == "" || len(lines) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(lines, "\n"))
	return errors.Join(err, f.Close())
}

// read gives the lines of a file of notes, each once, in their order.
func read(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out, nil
}

// mustRun splits a list of tests.
func mustRun(list string) []string { return strings.Fields(list) }
