package sitetest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/sitetest"
)

// told gives the lines of a cluster's creation and deletion.
func told(t *testing.T, name string, change ...string) []string {
	t.Helper()
	return toldAfter(t, 0, name, change...)
}

// toldAfter is told at a later time.
func toldAfter(t *testing.T, wait time.Duration, name string, change ...string) (lines []string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "..", "testdata", "clusters", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(change...).Replace(string(a.Files[0].Data))
	synctest.Test(t, func(t *testing.T) {
		s := sitetest.Of(t, sitetest.Options{Config: config, Root: "../.."})
		time.Sleep(wait)
		tr := s.Transcribe()
		for _, p := range []sitetest.Pipe{pipeline.Create, pipeline.Delete} {
			tr.Plan(p)
			s.Must(p, "run")
		}
		lines = tr.Lines()
	})
	return lines
}

// TestTwoMakingsAreToldAlike, though they have other keys, passwords and times.
func TestTwoMakingsAreToldAlike(t *testing.T) {
	for _, name := range []string{"site", "masters", "masters-stacked", "etcd-hosts", "addons", "registry-existing"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := told(t, name)
			if d := cmp.Diff(first, toldAfter(t, 26*time.Hour+5*time.Second, name)); d != "" {
				t.Errorf("the same cluster is told in two ways:\n%s", d)
			}
			if len(first) < 500 {
				t.Errorf("only %d lines", len(first))
			}
			for _, l := range first {
				for _, part := range []string{"-----BEGIN", "192.0.2.1", "2000-01-"} {
					if strings.Contains(l, part) {
						t.Errorf("%q is in %s", part, l)
					}
				}
			}
		})
	}
}

// TestEachRemovedFileIsALine: two commands that remove two files leave what one command leaves.
func TestEachRemovedFileIsALine(t *testing.T) {
	lines := told(t, "single")
	of := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, " fs.remove /") })
	for _, l := range of {
		if strings.Count(l, " /") != 1 {
			t.Errorf("%q names several files", l)
		}
	}
	if !slices.ContainsFunc(of, func(l string) bool { return strings.HasSuffix(l, ".json") }) {
		t.Errorf("no record is removed in %d lines", len(of))
	}
}

// TestWithout: a step on a host of several roles is known from a host of one of them.
func TestWithout(t *testing.T) {
	known := []string{"create a.b on the first master", "create a.c on a further worker or the first registry", "create a.b needs x"}
	for line, is := range map[string]bool{
		"create a.b on the first master or the first registry":   true,
		"create a.c on the first registry":                       true,
		"create a.c on a further worker":                         true,
		"create a.c on a further worker or a further master":     true,
		"create a.b on the first worker or a further master":     false,
		"delete a.b on the first master":                         false,
		"create a.b needs x":                                     true,
		"a.b fs.write /x < he is on the first master or nowhere": false,
	} {
		if got := len(sitetest.Without([]string{line}, known)) == 0; got != is {
			t.Errorf("%s: known is %t", line, got)
		}
	}
}

// TestAChangeIsTold: what differs between two configs is in the lines, and nothing else.
func TestAChangeIsTold(t *testing.T) {
	base := told(t, "site")
	for name, c := range map[string]struct {
		change []string
		want   string // a line more, or none
	}{
		"another address of a host": {[]string{"192.0.2.21", "192.0.2.77"}, ""},
		"another name of a host":    {[]string{"w1", "other1"}, ""},
		"the registry on a node":    {[]string{"    - {name: r1, address: 192.0.2.10}\n", "", "registry: [r1]", "registry: [w2]"}, "create preflight.clocks on the first master"}, // hosts are compared on the first one
		"another backend":           {[]string{"{plugin: flannel}", "{plugin: flannel, flannel: {backend: host-gw}}"}, "host-gw"},
		"another folder of images":  {[]string{"{plugin: flannel}", "{plugin: flannel}\n  registry: {registryDataDir: /data/images}"}, "fs.mkdir /data/images"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			only := sitetest.Without(told(t, "site", c.change...), base)
			if text := strings.Join(only, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("told:\n%s", text)
			}
		})
	}
}
