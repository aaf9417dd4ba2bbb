package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/manifest"
)

// artifacts are files and charts by the name of their artifact.
type artifacts map[string][]byte

func (s artifacts) PinArtifact(_ context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	sum := sha256.Sum256(s[a.Name])
	a.SHA256, a.Size, a.Chart = hex.EncodeToString(sum[:]), int64(len(s[a.Name])), &manifest.ChartMeta{Name: a.Name}
	return a, nil
}

func (s artifacts) ReadArtifact(_ context.Context, a manifest.Artifact) ([]byte, error) {
	b, ok := s[a.Name]
	if !ok {
		return nil, fmt.Errorf("%s is none of the artifacts", a.Name)
	}
	return b, nil
}

func chartOf(t *testing.T, name string, files ...chart.File) []byte {
	t.Helper()
	c := &chart.Chart{Meta: chart.Meta{Name: name}, Files: append(files, chart.File{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n")})}
	b, err := c.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fileOf(name, text string) chart.File { return chart.File{Name: name, Data: []byte(text)} }

// TestDiscover: charts are rendered for each Kubernetes version, with the config's
// values and with the kinds that other add-ons define; manifests are read.
func TestDiscover(t *testing.T) {
	sets := []string{"v1.31.0", "v1.32.2"}
	c := &manifest.Cluster{Spec: manifest.Spec{
		Network: manifest.Network{Plugin: "flannel"},
		Addons: []manifest.Addon{
			{Name: "web", Namespace: "shop", Source: "https://charts.example", Version: "1.0.0", Values: map[string]any{"tag": "v7"}},
			{Name: "kinds", Source: "https://files.example/kinds.yaml"},
		},
		Bundle: manifest.Bundle{Images: []manifest.BundleImage{{Reference: "busybox:1.36"}, {Reference: "nobody/asks:1"}}},
	}}
	s := artifacts{
		"web": chartOf(t, "web", fileOf("values.yaml", "tag: v1\n"), fileOf("templates/a.yaml", `
image: quay.io/a/web:{{ .Values.tag }}
---
image: quay.io/a/{{ .Release.Namespace }}:{{ .Capabilities.KubeVersion }}
{{ if .Capabilities.APIVersions.Has "things.example/v1" }}
---
image: quay.io/a/monitor:v1
{{ end }}`)),
		"kinds":   []byte("kind: CustomResourceDefinition\nspec: {group: things.example, versions: [{name: v1}]}\n---\nkind: Pod\nspec: {containers: [{image: busybox:1.36}]}\n"),
		"flannel": []byte("kind: DaemonSet\nspec: {containers: [{image: 'ghcr.io/flannel:1'}]}\n"),
		"notes":   []byte("image: quay.io/not/asked:1\n"),
	}
	l := &manifest.Lock{Sets: []manifest.Set{{Name: sets[0]}, {Name: sets[1]}}, Artifacts: []manifest.Artifact{
		{ID: "chart/web/1.0.0", Kind: manifest.Chart, Name: "web", Sets: sets, Repository: "https://charts.example"},
		{ID: "file/flannel/1", Kind: manifest.File, Name: "flannel", Sets: sets, Address: "https://files.example/flannel.yml"},
		{ID: "file/kinds/config", Kind: manifest.File, Name: "kinds", Sets: sets, Address: "https://files.example/kinds.yaml"},
		{ID: "file/notes/config", Kind: manifest.File, Name: "notes", Sets: sets, Address: "https://files.example/notes.yaml"},
	}}
	found, err := Discover(t.Context(), s, c, l)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %v %v %s", f.Reference, f.Sets, f.Owners, f.Places[0].Chart))
	}
	want := []string{
		"docker.io/library/busybox:1.36 [v1.31.0 v1.32.2] [kinds] ", "ghcr.io/flannel:1 [v1.31.0 v1.32.2] [flannel] ",
		"quay.io/a/monitor:v1 [v1.31.0 v1.32.2] [web] web 1.0.0", "quay.io/a/shop:v1.31.0 [v1.31.0] [web] web 1.0.0", "quay.io/a/shop:v1.32.2 [v1.32.2] [web] web 1.0.0",
		"quay.io/a/web:v7 [v1.31.0 v1.32.2] [web] web 1.0.0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"nobody/asks:1"}, Unreferenced(c, found)); d != "" {
		t.Error(d)
	}
	delete(s, "web")
	if _, err := Discover(t.Context(), s, c, l); err == nil || !strings.Contains(err.Error(), "chart/web/1.0.0") {
		t.Errorf("%v", err)
	}
}

const one, two = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "sha256:2222222222222222222222222222222222222222222222222222222222222222"

func asks(refs ...string) []ReferencedImage {
	var out []ReferencedImage
	for _, r := range refs {
		f := ReferencedImage{Sets: []string{"v1.32.2"}, Owners: []string{"web"}}
		f.Reference = r
		out = append(out, f)
	}
	return out
}

// TestAddFound: what is listed already is not added, a digest beside a tag counts,
// and what is not found any more goes.
func TestAddFound(t *testing.T) {
	l := &manifest.Lock{Images: []manifest.ImagePin{
		{ID: "image/busybox:1", Reference: "busybox:1", Digest: one, Trust: manifest.FromContent},
		{ID: "image/quay.io/a/kept:1", Reference: "quay.io/a/kept:1", Digest: one, Trust: manifest.FromUpstream},
		{ID: "image/quay.io/a/gone:1", Reference: "quay.io/a/gone:1", Digest: one, Trust: manifest.FromUpstream},
	}}
	out := AddDiscovered(l, asks("docker.io/library/busybox:1", "docker.io/library/busybox:1@"+one, "docker.io/library/busybox:1@"+two, "quay.io/a/kept:1", "quay.io/a/new:1"))
	var got []string
	for _, im := range out.Images {
		got = append(got, fmt.Sprint(im.ID, " ", im.Digest != "", " ", im.Trust, " ", im.Names))
	}
	want := []string{
		"image/busybox:1 true content []",
		"image/docker.io/library/busybox:1@" + two + " false upstream [web/docker.io/library/busybox:1@" + two + "]",
		"image/quay.io/a/kept:1 true upstream [web/quay.io/a/kept:1]", "image/quay.io/a/new:1 false upstream [web/quay.io/a/new:1]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestForesee: a lock with images that were found answers the config that it was
// made for, and one that was found becomes one that is listed.
func TestForesee(t *testing.T) {
	found := manifest.ImagePin{
		ID: "image/quay.io/a/b:1", Reference: "quay.io/a/b:1", Names: []string{"web/x"}, Sets: []string{"v1.32.2"}, Digest: one, Size: 1, Trust: manifest.FromUpstream,
		Platforms: []manifest.PlatformImage{{Platform: manifest.Platform{OS: "linux", Arch: "amd64"}}},
	}
	resolved := &manifest.Lock{Sets: []manifest.Set{{Name: "v1.32.2"}}, Platforms: []manifest.Platform{{OS: "linux", Arch: "amd64"}}}
	previous := resolved.Clone()
	previous.Images = []manifest.ImagePin{found}
	if l, changes := Adopt(AdoptDiscovered(resolved, previous), previous); len(changes) > 0 || len(l.Images) != 1 {
		t.Errorf("%v", changes)
	}
	resolved.Images = []manifest.ImagePin{{ID: found.ID, Reference: found.Reference, Names: []string{found.Reference}, Sets: found.Sets}}
	l, changes := Adopt(AdoptDiscovered(resolved, previous), previous)
	if len(changes) != 1 || len(l.Images) != 1 || l.Images[0].Trust != manifest.FromContent || l.Images[0].Digest != one {
		t.Errorf("%v %+v", changes, l.Images)
	}
	resolved.Images, resolved.Sets = nil, []manifest.Set{{Name: "v1.33.0"}}
	if l := AdoptDiscovered(resolved, previous); len(l.Images) != 0 {
		t.Errorf("%+v", l.Images)
	}
	l = WithoutUnpinned(&manifest.Lock{Images: []manifest.ImagePin{found, {Reference: "a", Trust: manifest.FromUpstream}, {Reference: "b"}}})
	if len(l.Images) != 2 || l.Images[0].Reference != found.Reference || l.Images[1].Reference != "b" {
		t.Errorf("%+v", l.Images)
	}
}

// TestChartsHaveHelmsMediaTypes, so that helm pulls them out of a registry that
// holds a bundle. Two add-ons of one chart share its bytes.
func TestChartsHaveHelmsMediaTypes(t *testing.T) {
	w := newWorld(t)
	archive := chartOf(t, "web")
	for _, id := range []string{"chart/web/1.0.0", "chart/other/config"} {
		w.Lock.Artifacts = append(w.Lock.Artifacts, manifest.Artifact{
			ID: id, Kind: manifest.Chart, Name: strings.Split(id, "/")[1], Version: "1.0.0", Sets: w.Lock.Artifacts[0].Sets, Address: "https://charts.example/web",
			SHA256: w.Put(archive), Size: int64(len(archive)), Chart: &manifest.ChartMeta{APIVersion: "v2", Name: "web", Version: "1.0.0"},
		})
	}
	path := w.build(t, 2)
	b, err := Verify(t.Context(), path, anyone, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var root struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	readJSON(t, b, b.Root.Digest.String(), &root)
	n := 0
	for _, m := range root.Manifests {
		if !strings.HasPrefix(m.Annotations["io.kubexm.artifact.id"], "chart/") {
			continue
		}
		n++
		var doc struct {
			ArtifactType string
			Config       struct{ MediaType, Digest string }
			Layers       []struct {
				MediaType   string
				Annotations map[string]string
			}
		}
		readJSON(t, b, m.Digest, &doc)
		if doc.ArtifactType != "" || doc.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || len(doc.Layers) != 1 ||
			doc.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" || doc.Layers[0].Annotations["org.opencontainers.image.title"] != "web-1.0.0.tgz" {
			t.Errorf("%+v", doc)
		}
		var meta map[string]string
		readJSON(t, b, doc.Config.Digest, &meta)
		if d := cmp.Diff(map[string]string{"apiVersion": "v2", "name": "web", "version": "1.0.0"}, meta); d != "" {
			t.Error(d)
		}
	}
	if n != 2 {
		t.Errorf("%d charts", n)
	}
}

func readJSON(t *testing.T, b *Bundle, digest string, into any) {
	t.Helper()
	rc, _, err := b.Blob(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(rc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// TestValuesThatChartsReject: they are reported for all charts together, and once for all
// Kubernetes versions.
func TestValuesThatChartsReject(t *testing.T) {
	c, problems := manifest.Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  kubernetes: {version: v1.32.2}
  addons:
    - {name: web, source: 'https://charts.example', version: 1.0.0, values: {tag: 7}}
    - {name: web, namespace: other, source: 'https://charts.example', version: 1.0.0, values: {tag: seven}}
    - {name: db, source: 'https://charts.example', version: 1.0.0, values: {port: high}}
`))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	sets := []string{"v1.31.0", "v1.32.2"}
	l := &manifest.Lock{Sets: []manifest.Set{{Name: sets[0]}, {Name: sets[1]}}}
	s := artifacts{
		"web": chartOf(t, "web", fileOf("values.schema.json", `{"properties": {"tag": {"type": "string"}}}`)),
		"db":  chartOf(t, "db", fileOf("values.schema.json", `{"properties": {"port": {"type": "integer"}}}`)),
	}
	for _, name := range []string{"web", "db"} {
		l.Artifacts = append(l.Artifacts, manifest.Artifact{ID: "chart/" + name, Kind: manifest.Chart, Name: name, Sets: sets, Repository: "https://charts.example"})
	}
	_, err := Discover(t.Context(), s, c, l)
	want := `7:78: error: spec.addons[0].values.tag: is a number, the chart accepts a string; see values.schema.json of chart web 1.0.0 for the accepted values
9:77: error: spec.addons[2].values.port: is a string, the chart accepts an integer; see values.schema.json of chart db 1.0.0 for the accepted values`
	if err == nil {
		t.Fatal("no error")
	}
	if d := cmp.Diff(want, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n ", "\n")); d != "" {
		t.Error(d)
	}
}
