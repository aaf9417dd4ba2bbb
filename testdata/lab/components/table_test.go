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

func TestTableByKubernetes(t *testing.T) {
	for version, want := range map[string]string{
		"": "v3.5.16 v1.11.3 v3.10.0", "v1.32.2": "v3.5.16 v1.11.3 v3.10.0", "1.33.0": "v3.5.21 v1.12.0 v3.10.0", "v1.33.1": "v3.5.21 v1.12.0 v3.10.0",
		"v1.34.0": "v3.6.4 v1.12.1 v3.10.1", "v1.3.4": "v3.5.16 v1.11.3 v3.10.0",
	} {
		all, err := Table(version)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"etcd", "coredns", "pause"} {
			c, err := Find(all, name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.Version)
		}
		if have := strings.Join(got, " "); have != want {
			t.Errorf("%q: etcd, CoreDNS and pause %s, want %s", version, have, want)
		}
	}
}

func TestChoose(t *testing.T) {
	rows, err := Table("")
	if err != nil {
		t.Fatal(err)
	}
	was, err := Find(rows, "containerd")
	if err != nil {
		t.Fatal(err)
	}
	for version, module := range map[string]string{"v1.7.27": "github.com/containerd/containerd", "v2.0.5": was.Module, was.Version: was.Module} {
		all, err := Choose(rows, "containerd="+version)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Find(all, "containerd")
		if err != nil || c.Version != version || c.Module != module || len(all) != len(rows) {
			t.Errorf("%s: %+v, %v", version, c, err)
		}
		for _, pkg := range c.Programs {
			if !strings.HasPrefix(pkg, module+"/cmd/") {
				t.Errorf("%s: program %s", version, pkg)
			}
		}
	}
	if now, _ := Find(rows, "containerd"); now.Version != was.Version {
		t.Errorf("the rows that were given have %s now", now.Version)
	}
	for _, bad := range []string{"containerd=v1.0.0", "containerd", "docker=v1"} {
		if _, err := Choose(rows, bad); err == nil || !strings.Contains(err.Error(), "the lab has no ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAlternativesAreNotPinned: their module files are made in the cache, beside
// those of the row that they take the place of.
func TestAlternativesAreNotPinned(t *testing.T) {
	others, err := read("alternatives.yaml", alternatives)
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{Root: "checkout", Cache: "cache"}
	seen := map[string]bool{}
	for _, c := range others {
		if want := filepath.Join("cache", "modules", c.Name, c.Version); b.folder(c) != want || seen[want] || len(c.Programs) == 0 {
			t.Errorf("%s %s: folder %s", c.Name, c.Version, b.folder(c))
		}
		seen[b.folder(c)] = true
	}
}
