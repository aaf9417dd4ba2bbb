package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/testdata/built"
)

// TestSmoke tries the rows that are quick, against the real binary.
func TestSmoke(t *testing.T) {
	t.Parallel() // beside the printed lines, which mostly wait
	p, err := programsAt(built.Kubexm(t), built.Brittle(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := openLab(t.Context(), p, "../configs/quickstart.yaml", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l.quick = true
	var rows []row
	for _, r := range everyRow() {
		if r.quick {
			rows = append(rows, r)
		}
	}
	n, err := openNotes(filepath.Join(t.TempDir(), "notes"), "")
	if err != nil {
		t.Fatal(err)
	}
	var log, table bytes.Buffer
	if err := n.walk(t.Context(), l, rows, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if failed := n.table(&table, rows); failed > 0 || len(rows) < 20 {
		t.Errorf("%d of %d rows failed:\n%s", failed, len(rows), &log)
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == naiveName {
		os.Exit(naive(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// An interrupted run goes on where it stopped: rows that succeeded stay, those
// that failed, were skipped, or were found with other programs are tried again.
func TestNotesGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.jsonl")
	ran := map[string]int{}
	broken := func(name string, err error) row {
		return row{group: "g", fault: name, run: func(context.Context, *lab) (string, error) { ran[name]++; return "x", err }}
	}
	rows := []row{broken("good", nil), broken("bad", errors.New("no")), broken("skipped", fmt.Errorf("%w: why", errSkipped))}
	walk := func(of string) int {
		t.Helper()
		n, err := openNotes(path, of)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := n.walk(t.Context(), nil, rows, &b); err != nil {
			t.Fatal(err)
		}
		return n.table(&b, rows)
	}
	walk("one")
	// What a kill leaves: half a line.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"of":"one","row":"g/ba`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if failed := walk("one"); failed != 1 || ran["good"] != 1 || ran["bad"] != 2 || ran["skipped"] != 2 {
		t.Errorf("%d failed, ran %v", failed, ran)
	}
	if walk("two"); ran["good"] != 2 {
		t.Errorf("with another binary the good row ran %d times, want 2", ran["good"])
	}
	text, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var r result
		if len(line) > 0 && (json.Unmarshal(line, &r) != nil || r.Of != "two") {
			t.Errorf("line %q", line)
		}
	}
}
