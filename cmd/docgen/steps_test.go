package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func loaded(t *testing.T) *catalogue {
	t.Helper()
	c, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCatalogue: every step is told of, and the page is what that gives.
func TestCatalogue(t *testing.T) {
	c := loaded(t)
	if err := errors.Join(c.problems()...); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(page), c.page()); d != "" {
		t.Errorf("docs/reference/steps.md is stale; go generate ./cmd/docgen writes it (-there +wanted):\n%s", d)
	}
}

// TestGapsAreSeen: a step that is not told of, and a note of no step.
func TestGapsAreSeen(t *testing.T) {
	for want, breakIt := range map[string]func(*catalogue){
		"kubeadm.init: add its undo step to the inverses in notes":  func(c *catalogue) { c.steps["kubeadm.init"].inverse = "" },
		"etcd.install: the function that returns it has no comment": func(c *catalogue) { c.steps["etcd.install"].does = "" },
		"why: no plan contains the step etcd.gone":                  func(c *catalogue) { c.notes.Why["etcd.gone"] = "a reason" },
	} {
		c := loaded(t)
		breakIt(c)
		if err := errors.Join(c.problems()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestNotesAreStrict(t *testing.T) {
	if _, err := readNotes(fstest.MapFS{"notes/a.yaml": {Data: []byte("reasons: {node.spin: a reason}\n")}}); err == nil {
		t.Error("an unknown field passed")
	}
	one := &fstest.MapFile{Data: []byte("why: {node.spin: a reason}\n")}
	if _, err := readNotes(fstest.MapFS{"notes/a.yaml": one, "notes/b.yaml": one}); err == nil {
		t.Error("two files say something of a step")
	}
	if both, err := readNotes(fstest.MapFS{"notes/a.yaml": one, "notes/b.yaml": {Data: []byte("inverses: {node.spin: it stops by itself}\n")}}); err != nil || both.Why["node.spin"] == "" || both.Inverses["node.spin"] == "" {
		t.Error(both, err)
	}
}
