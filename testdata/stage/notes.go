package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// The environment variables of a stage's programs.
const (
	deadlineEnv = "STAGE_DEADLINE"  // no scenario starts after it, and of the walk's legs only those that are needed; in seconds since 1970
	flakesEnv   = "STAGE_FLAKES"    // a file: a line for each test that failed and then passed
	ranEnv      = "STAGE_RAN"       // a file: a line for each test of KUBEXM_MUST_RUN that ran
	mustRunEnv  = "KUBEXM_MUST_RUN" // the tests that must not be skipped, separated by spaces
)

// Notes are the files in which stages report more than their exit code. An empty path disables
// a file.
type Notes struct {
	Flakes string
	Ran    string
}

// NotesOf reads the paths from the environment.
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

// read returns the lines of a file of notes, without duplicates, in their order.
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
