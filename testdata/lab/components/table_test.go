package components

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestTableAgreesWithModules(t *testing.T) {
	all, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if seen[c.Name] {
				t.Error("it is there twice")
			}
			seen[c.Name] = true
			if len(c.Programs) == 0 || !strings.HasPrefix(c.Version, "v") {
				t.Errorf("programs %v, version %q", c.Programs, c.Version)
			}
			if c.Module == "" {
				return
			}
			raw, err := os.ReadFile(filepath.Join(c.Name, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			mod, err := modfile.Parse(c.Name+"/go.mod", raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == c.Module && r.Mod.Version == c.Version }) {
				t.Errorf("%s/go.mod does not ask for %s %s: run go run ./testdata/lab/cmd pin %[1]s", c.Name, c.Module, c.Version)
			}
			for _, pkg := range c.Programs {
				if !slices.ContainsFunc(mod.Tool, func(x *modfile.Tool) bool { return x.Path == pkg }) {
					t.Errorf("%s/go.mod has no tool %s", c.Name, pkg)
				}
			}
		})
	}
}

func TestTableWithAnotherKubernetes(t *testing.T) {
	for _, version := range []string{"1.33.4", "v1.33.4"} {
		all, err := Table(version)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Find(all, Kubernetes)
		if err != nil || c.Version != "v1.33.4" {
			t.Fatalf("%s, %v", c.Version, err)
		}
		flags := c.ldflags()
		for _, want := range []string{"gitVersion=v1.33.4 ", "gitMinor=33 "} {
			if !strings.Contains(flags, want) {
				t.Errorf("the linker's flags lack %q: %s", want, flags)
			}
		}
	}
	if _, err := Find(nil, "etcd"); err == nil {
		t.Error("an empty table has etcd")
	}
}
