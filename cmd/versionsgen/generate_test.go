package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/versions"
)

// factsDir is the folder with the facts: KUBEXM_FACTS, else beside the checkout.
func factsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUBEXM_FACTS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "facts")
	}
	if _, err := os.Stat(filepath.Join(dir, "checksums.yaml")); err != nil {
		t.Skip("no facts here: set KUBEXM_FACTS to their folder")
	}
	return dir
}

func inputs(t *testing.T) (map[string]*source, map[string]map[string]tagged) {
	t.Helper()
	sources, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	tagged, err := readTags()
	if err != nil {
		t.Fatal(err)
	}
	return sources, tagged
}

func generated(t *testing.T, f *facts) map[string]*versions.Document {
	t.Helper()
	sources, tagged := inputs(t)
	charted, err := readCharts()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := generate(sources, f, tagged, charted)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// The committed data is what the facts give, byte for byte.
func TestDataIsWhatTheFactsGive(t *testing.T) {
	f, err := readFacts(factsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeData(dir, generated(t, f)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join("..", "..", "versions", "data")
	if d := cmp.Diff(read(t, data), read(t, dir)); d != "" {
		t.Errorf("run go run ./cmd/versionsgen -facts DIR (-data +generated)\n%s", d)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(text)
	}
	return out
}

func TestEachKubernetesAsksForWhatKubeadmDoes(t *testing.T) {
	f, err := readFacts(factsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	c, problems := versions.Load()
	if problems != nil {
		t.Fatal(problems)
	}
	if got, want := len(c.Versions(versions.Kubernetes)), len(f.kubernetes()); got != want || want < 100 {
		t.Fatalf("%d Kubernetes versions of %d", got, want)
	}
	for _, v := range f.kubernetes() {
		for component, image := range map[string]string{"coredns": "coredns", "pause": "pause", "etcd-image": "etcd"} {
			if got, _ := c.Default(component, v); got != f.kubeadm[v][image] {
				t.Errorf("%s of Kubernetes %s is %s; kubeadm asks for %s", component, v, got, f.kubeadm[v][image])
			}
		}
		if got, _ := c.Default("etcd", v); !strings.HasPrefix(f.kubeadm[v]["etcd"], strings.TrimPrefix(got, "v")+"-") {
			t.Errorf("etcd of Kubernetes %s is %s; kubeadm asks for %s", v, got, f.kubeadm[v]["etcd"])
		}
	}
}

// Two sources agree on what flannel's manifest asks for.
func TestTagsAgreeWithTheFacts(t *testing.T) {
	f, err := readFacts(factsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	_, tagged := inputs(t)
	for version, want := range f.addons["flannel/flannel"] {
		got := slices.Sorted(maps.Keys(tagged["flannel"][strings.TrimPrefix(version, "v")].Images))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("flannel %s: %v at its tag, %v in the facts", version, got, want)
		}
	}
}

func TestGenerateFromSmallFacts(t *testing.T) {
	f := &facts{
		checksums: map[string]map[string]map[string]string{
			"kubelet": {"1.30.0": {"amd64": "aa", "arm64": "bb"}, "1.31.0": {"amd64": "cc"}},
			"tool":    {"1.2.0": {"amd64": "dd", "arm64": "ee"}, "1.3.0": {"amd64": "ff"}, "0.1.0": {"amd64": "00"}},
		},
		kubeadm: map[string]map[string]string{"1.30.0": {"etcd": "3.5.9-0", "coredns": "v1.11.1", "pause": "3.9"}},
		addons:  map[string]map[string][]string{"a/b": {"v2": {"h.io/x/one:1", "h.io/x/two:2", "h.io/x/one:1"}}},
	}
	sources := map[string]*source{
		"kubernetes": {},
		"kubelet":    {Table: "kubelet", Component: versions.Component{Follows: "kubernetes"}},
		"tool":       {Table: "tool", Prefix: "v", Take: ">=1", Only: []string{"amd64"}, Minor: true, Published: []string{"1.4.0"}},
		"pause":      {Kubeadm: "pause"},
		"addon":      {Addon: "a/b"},
		"chart":      {Prefix: "v", Rules: []rule{{In: "<2", Release: versions.Release{Kubernetes: ">=1.20"}}}},
		"tagged":     {Prefix: "v", Rules: []rule{{In: "<2", Release: versions.Release{Kubernetes: ">=1.20"}}, {In: ">=1", Release: versions.Release{Kubernetes: "no"}}}},
	}
	docs, err := generate(sources, f, map[string]map[string]tagged{
		"tagged": {"1.0.0": {SHA256: "11", Images: map[string]string{"h.io/y:1": "sha256:22", "h.io/z:1": ""}}},
	}, map[string]map[string]charted{"chart": {"1.0.0": {SHA256: "33", Kubernetes: ">=1.1"}, "2.0.0": {SHA256: "44", Kubernetes: ">=1.23"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]versions.Release{}
	for name, doc := range docs {
		got[name] = doc.Components[name].Versions
	}
	image := func(name, ref string) versions.Image { return versions.Image{Name: name, Reference: ref} }
	want := map[string]map[string]versions.Release{
		"kubernetes": {"v1.30.0": {With: map[string]string{"etcd": "v3.5.9", "etcd-image": "3.5.9-0", "coredns": "v1.11.1", "pause": "3.9"}}},
		"kubelet":    {"v1.30.0": {SHA256: map[string]string{"amd64": "aa", "arm64": "bb"}}},
		"tool": {
			"v1.2.0": {Kubernetes: ">=1.2, <1.3", SHA256: map[string]string{"amd64": "dd"}},
			"v1.3.0": {Kubernetes: ">=1.3, <1.4", SHA256: map[string]string{"amd64": "ff"}},
			"v1.4.0": {Kubernetes: ">=1.4, <1.5"},
		},
		"pause": {"3.9": {}},
		"addon": {"v2": {Recipe: versions.Recipe{Images: []versions.Image{
			image("addon/one", "h.io/x/one:1"), image("addon/two", "h.io/x/two:2"),
		}}}},
		"chart": {
			"v1.0.0": {Kubernetes: ">=1.20", SHA256: map[string]string{"any": "33"}},
			"v2.0.0": {Kubernetes: ">=1.23", SHA256: map[string]string{"any": "44"}},
		},
		"tagged": {"v1.0.0": {Kubernetes: ">=1.20", SHA256: map[string]string{"any": "11"}, Recipe: versions.Recipe{Images: []versions.Image{
			image("tagged/y", "h.io/y:1"), image("tagged/z", "h.io/z:1"),
		}}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"h.io/y:1": "sha256:22"}, docs["tagged"].Images); d != "" {
		t.Error(d)
	}
}

func TestWriteDataRemovesWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gone.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeData(dir, map[string]*versions.Document{"here": {}}); err != nil {
		t.Fatal(err)
	}
	got := read(t, dir)
	if _, stays := got["gone.yaml"]; stays || !strings.HasPrefix(got["here.yaml"], dataHeader) {
		t.Errorf("%v", got)
	}
}

func TestFactsAreReadStrictly(t *testing.T) {
	dir := t.TempDir()
	if _, err := readFacts(dir); err == nil {
		t.Error("an empty folder passes")
	}
	for _, name := range []string{"checksums.yaml", "kubeadm-images.yaml", "addon-images.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("- list"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readFacts(dir); err == nil || !strings.Contains(err.Error(), ".yaml: ") {
		t.Errorf("got %v", err)
	}
}
