package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// TestCatalogue: every step is told of, every name of the documents is answered, and
// the page is what they give.
func TestCatalogue(t *testing.T) {
	c := loaded(t)
	if err := errors.Join(c.problems()...); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(page), c.page()); d != "" {
		t.Errorf("docs/steps.md is stale; go generate ./cmd/docgen writes it (-there +wanted):\n%s", d)
	}
}

// TestPromisesAreHeld: an answer that the code does not hold is seen.
func TestPromisesAreHeld(t *testing.T) {
	for want, breakIt := range map[string]func(*catalogue){
		"no plan holds a step etcd.instal": func(c *catalogue) {
			c.table.Asked = append(c.table.Asked, answer{Names: map[string][]int{"Step_New": {3}}, Steps: []string{"etcd.instal"}})
		},
		"there is no steps/op.Unite": func(c *catalogue) {
			c.table.Asked = append(c.table.Asked, answer{Names: map[string][]int{"Step_New": {3}}, Pieces: []string{"steps/op.Unite"}})
		},
		"Step_CheckOS is answered twice": func(c *catalogue) {
			c.table.Asked = append(c.table.Asked, answer{Names: map[string][]int{"Step_CheckOS": {3}}, Left: "a reason"})
		},
		"Step_New: give steps and pieces": func(c *catalogue) {
			c.table.Asked = append(c.table.Asked, answer{Names: map[string][]int{"Step_New": {3}}, Steps: []string{"etcd.install"}, Left: "a reason"})
		},
		"Step_Empty: give steps and pieces": func(c *catalogue) {
			c.table.Asked = append(c.table.Asked, answer{Names: map[string][]int{"Step_Empty": {3}}})
		},
		"kubeadm.init changes something, and nothing in asked names an inverse": func(c *catalogue) { c.steps["kubeadm.init"].inverse = "" },
		"etcd.install: the function that makes it has no comment":               func(c *catalogue) { c.steps["etcd.install"].does = "" },
		"etcd.spin: nothing in asked names it, neither as an answer": func(c *catalogue) {
			c.steps["etcd.spin"] = &step{name: "etcd.spin", does: "Spins.", inverse: "none"}
		},
		"beyond: no plan holds a step etcd.gone": func(c *catalogue) { c.table.Beyond["etcd.gone"] = "a reason" },
	} {
		c := loaded(t)
		breakIt(c)
		if err := errors.Join(c.problems()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestTableIsStrict(t *testing.T) {
	if _, err := readAsked(fstest.MapFS{"asked/a.yaml": {Data: []byte("asked: [{name: {X: [1]}}]\n")}}); err == nil {
		t.Error("an unknown field passed")
	}
	one := &fstest.MapFile{Data: []byte("beyond: {node.spin: a reason}\n")}
	if _, err := readAsked(fstest.MapFS{"asked/a.yaml": one, "asked/b.yaml": one}); err == nil {
		t.Error("two files say something of a step")
	}
	if both, err := readAsked(fstest.MapFS{"asked/a.yaml": one, "asked/b.yaml": {Data: []byte("inverses: {node.spin: it stops by itself}\n")}}); err != nil || both.Beyond["node.spin"] == "" || both.Inverses["node.spin"] == "" {
		t.Error(both, err)
	}
}

// asks matches the names of steps as the documents write them.
var asks = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:Sub)?Step_[A-Za-z0-9_]*[A-Za-z0-9]`), regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*Step\b`),
	regexp.MustCompile(`SubStep: ([A-Z][a-z]+[A-Z][A-Za-z]+)`),
}

// TestNamesOfTheDocuments compares asked with the documents themselves, which
// are no part of this repository: KUBEXM_DOCUMENTS names their folder.
func TestNamesOfTheDocuments(t *testing.T) {
	folder := os.Getenv("KUBEXM_DOCUMENTS")
	if folder == "" {
		t.Skip("KUBEXM_DOCUMENTS does not name the folder of the five documents")
	}
	want := map[string][]int{}
	for n := 1; n <= 5; n++ {
		files, err := filepath.Glob(filepath.Join(folder, strconv.Itoa(n)+"-*.md"))
		if err != nil || len(files) != 1 {
			t.Fatalf("document %d: %v, %v", n, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, re := range asks {
			for _, m := range re.FindAllStringSubmatch(string(text), -1) {
				if name := m[len(m)-1]; name != "SubStep" && !slices.Contains(want[name], n) {
					want[name] = append(want[name], n)
				}
			}
		}
	}
	got := map[string][]int{}
	for _, a := range loaded(t).table.Asked {
		for name, documents := range a.Names {
			got[name] = documents
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("asked and the documents differ (-documents +asked):\n%s", d)
	}
}
