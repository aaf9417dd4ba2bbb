package bundle

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

var updateImages = flag.Bool("update-images", false, "rewrite the lists of images in testdata/upstream.yaml; compare what changes with the manifests")

// published is one manifest or chart as upstream publishes it in a Go module, with
// the images that it asks for.
type published struct {
	Module string         `yaml:"module"`          // path@version
	Sum    string         `yaml:"sum"`             // of the module, as go.sum has it
	Path   string         `yaml:"path"`            // of a manifest, or of a chart's folder
	Named  string         `yaml:"named,omitempty"` // what Chart.yaml is called, where upstream makes it while releasing
	Values map[string]any `yaml:"values,omitempty"`
	Images []string       `yaml:"images"`
}

// TestImagesOfUpstream holds the search to what real manifests and charts ask for:
// no image more, and none less. They are read out of Go modules, so that nothing of
// theirs lies here; a module that `make modules` has not brought is passed over. A
// short run reads every third.
func TestImagesOfUpstream(t *testing.T) {
	text, err := os.ReadFile("testdata/upstream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(text, []byte("\n-"))
	var all []published
	if err := yaml.Unmarshal(text, &all); err != nil || len(all) < 25 {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	dirs := map[string]string{}
	for i, p := range all {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(p.Path, func(t *testing.T) {
			if _, ok := dirs[p.Module]; !ok {
				dirs[p.Module] = moduleDir(t, p)
			}
			dir := dirs[p.Module]
			if dir == "" {
				t.Skipf("module %s is not here: make modules brings it", p.Module)
			}
			got := asked(t, p, filepath.Join(dir, filepath.FromSlash(p.Path)))
			all[i].Images = got
			if d := cmp.Diff(p.Images, got); d != "" && !*updateImages {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	if *updateImages {
		out, err := yaml.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/upstream.yaml", append(append(head, '\n'), out...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// moduleDir gives where a module's files are; "" where nobody has downloaded it.
func moduleDir(t *testing.T, p published) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", p.Module)
	cmd.Dir = t.TempDir()                         // outside of any module
	cmd.Env = append(os.Environ(), "GOPROXY=off") // what `make modules` has brought: a test asks nobody outside
	out, err := cmd.Output()
	var m struct{ Dir, Sum string }
	if err != nil || json.Unmarshal(out, &m) != nil || m.Dir == "" {
		return ""
	}
	if m.Sum != p.Sum {
		t.Fatalf("module %s has sum %s, want %s", p.Module, m.Sum, p.Sum)
	}
	return m.Dir
}

// asked gives the images of one add-on made of p.
func asked(t *testing.T, p published, at string) []string {
	t.Helper()
	addon := manifest.Addon{Name: "x", Namespace: "y", Source: at, Type: "yaml", Values: p.Values}
	if p.Named != "" {
		at = filepath.Join(t.TempDir(), "chart")
		if err := os.CopyFS(at, os.DirFS(addon.Source)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(at, p.Named), filepath.Join(at, "Chart.yaml")); err != nil {
			t.Fatal(err)
		}
		addon.Source = at
	}
	kind := manifest.File
	if _, err := os.Stat(filepath.Join(at, "Chart.yaml")); err == nil {
		addon.Type, kind = "helm", manifest.Chart
	}
	a, err := fetch.Local("", manifest.Artifact{ID: "x", Kind: kind, Name: "x", Version: "config", Address: at, Sets: []string{"v1.32.2"}})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := fetch.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := fetch.New(fetch.Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	found, err := Discover(t.Context(), c, &manifest.Cluster{Spec: manifest.Spec{Addons: []manifest.Addon{addon}}}, &manifest.Lock{Artifacts: []manifest.Artifact{a}})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, f := range found {
		got = append(got, f.Reference)
		if strings.Contains(f.Reference, " ") || len(f.Places) == 0 {
			t.Errorf("%+v", f)
		}
	}
	return got
}
