package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/manifest"
)

// packedChart makes the archive of a chart with what else it says and holds.
func packedChart(t testing.TB, name, version, says string, files ...chart.File) []byte {
	t.Helper()
	c := &chart.Chart{Meta: chart.Meta{Name: name}, Files: append(files,
		chart.File{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: " + version + "\n" + says)})}
	b, err := c.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chartWorld is a repository of charts, a registry with one, and a folder.
type chartWorld struct {
	*upstream
	client *Client
	base   string
	web    []byte // in the repository, needs db and mq
	db, mq []byte
	index  string
}

func newChartWorld(t *testing.T) *chartWorld {
	t.Helper()
	w := &chartWorld{base: t.TempDir(), db: packedChart(t, "db", "2.1.0", ""), mq: packedChart(t, "mq", "3.0.0", "")}
	w.web = packedChart(t, "web", "1.2.3", `appVersion: "9"
dependencies:
- {name: db, version: 2.x, repository: 'https://upstream.test/charts'}
- {name: mq, version: 3.0.0, repository: 'oci://upstream.test/charts'}
`)
	w.index = fmt.Sprintf(`entries:
  db:
  - {name: db, version: 3.0.0, urls: [db-3.tgz]}
  - {name: db, version: 2.0.0, urls: [db-2.0.tgz]}
  - {name: db, version: 2.1.0, digest: %s, urls: [files/db.tgz]}
  - {name: db, version: 2.2.0-rc.1, urls: [rc.tgz]}
  web:
  - {name: web, version: v1.2.3, digest: %s, urls: ['https://upstream.test/elsewhere/web.tgz', 'https://mirror.example/x']}
  bare:
  - {name: db, version: 2.1.0, urls: [files/db.tgz]}
`, sum(w.db), sum(w.web))
	registry := newRegistry()
	config := registry.blob("application/vnd.cncf.helm.config.v1+json", []byte(`{"name":"mq"}`))
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{
		registry.blob("application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("signed")), registry.blob(mediaChart, w.mq),
	}}
	m.SchemaVersion = 2
	registry.put("charts/mq", "3.0.0", indented(t, m), ocispec.MediaTypeImageManifest)
	registry.image(t, "charts/image", "1", "linux/amd64", []byte("layer"))
	w.upstream = serve(t, func(rw http.ResponseWriter, r *http.Request) {
		files := map[string][]byte{
			"/charts/index.yaml": []byte(w.index), "/charts/files/db.tgz": w.db, "/elsewhere/web.tgz": w.web, "/not.tgz": []byte("hello"),
		}
		switch b, ok := files[r.URL.Path]; {
		case strings.HasPrefix(r.URL.Path, "/v2/"):
			registry.ServeHTTP(rw, r)
		case ok:
			served(b, "")(rw, r)
		default:
			rw.WriteHeader(http.StatusNotFound)
		}
	})
	w.client = w.newClient(t)
	return w
}

func (w *chartWorld) newClient(t *testing.T) *Client {
	t.Helper()
	cache, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Cache: cache, Base: w.base, Attempts: 1, Sources: manifest.Sources{Replace: []manifest.Replacement{
		{From: "upstream.test", To: strings.TrimPrefix(w.URL, "http://"), PlainHTTP: true},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *chartWorld) folder(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(w.base, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChartsOfEachForm are pinned, and fetched by their pin on another machine.
func TestChartsOfEachForm(t *testing.T) {
	w := newChartWorld(t)
	w.folder(t, map[string]string{
		"charts/site/Chart.yaml":       "apiVersion: v2\nname: site\nversion: 0.1.0\ndependencies: [{name: common, version: 1.x, repository: 'file://../common'}, {name: db, version: 2.x, repository: 'https://upstream.test/charts'}]\n",
		"charts/site/templates/a.yaml": "a: 1\n",
		"charts/site/Chart.lock":       "dependencies: [{name: common, version: 1.0.0}, {name: db, version: 2.1.0}]\n",
		"charts/common/Chart.yaml":     "apiVersion: v2\nname: common\nversion: 1.0.0\n",
		"db.tgz":                       string(w.db),
	})
	for name, c := range map[string]struct {
		a     manifest.Artifact
		trust manifest.Trust
		sum   string // of what is carried; "" where it is packed here
		parts string
	}{
		"repository": {manifest.Artifact{Name: "db", Repository: "https://upstream.test/charts", Version: "2.1.0"}, manifest.FromPublished, sum(w.db), ""},
		"repository, with charts that it needs": {manifest.Artifact{Name: "web", Repository: "https://upstream.test/charts", Version: "1.2.3"}, manifest.FromContent, "",
			"web 1.2.3 https://upstream.test/elsewhere/web.tgz, db 2.1.0 https://upstream.test/charts/files/db.tgz, mq 3.0.0 oci://upstream.test/charts/mq:3.0.0"},
		"repository without digests": {manifest.Artifact{Name: "bare", Repository: "https://upstream.test/charts", Version: "v2.1.0"}, manifest.FromContent, sum(w.db), ""},
		"address":                    {manifest.Artifact{Name: "x", Address: "https://upstream.test/charts/files/db.tgz", Version: "config"}, manifest.FromContent, sum(w.db), ""},
		"registry":                   {manifest.Artifact{Name: "mq", Address: "oci://upstream.test/charts/mq:3.0.0", Version: "3.0.0"}, manifest.FromContent, sum(w.mq), ""},
		"archive of this machine":    {manifest.Artifact{Name: "x", Address: "db.tgz", Version: "config"}, manifest.FromConfig, sum(w.db), ""},
		"folder": {manifest.Artifact{Name: "site", Address: "./charts/site", Version: "config"}, manifest.FromContent, "",
			"site 0.1.0 ./charts/site, common 1.0.0 charts/common, db 2.1.0 https://upstream.test/charts/files/db.tgz"},
		"folder that needs nothing": {manifest.Artifact{Name: "x", Address: "charts/common", Version: "config"}, manifest.FromConfig, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Kind = manifest.Chart
			want := c.a
			if c.a.Local() {
				var err error
				if want, err = Local(w.base, c.a); err != nil {
					t.Fatal(err)
				}
			}
			a, err := w.client.PinArtifact(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, p := range a.Parts {
				parts = append(parts, p.Name+" "+p.Version+" "+p.Address)
			}
			if a.Trust != c.trust || c.sum != "" && a.SHA256 != c.sum || strings.Join(parts, ", ") != c.parts || a.Chart == nil {
				t.Errorf("%+v", a)
			}
			other := w.newClient(t)
			if err := other.FetchArtifact(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			content, err := other.ReadArtifact(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			read, err := chart.Read(bytes.NewReader(content))
			if err != nil || len(read.Missing()) > 0 || read.Name != a.Chart.Name || read.Version != a.Chart.Version {
				t.Errorf("%+v, %v", read.Meta, err)
			}
			n := w.asked("")
			if err := other.FetchArtifact(t.Context(), a); err != nil || w.asked("") != n {
				t.Errorf("a warm cache asks: %v", err)
			}
			if strings.HasPrefix(a.Address, "https://") && len(a.Parts) == 0 && a.Blobs()[0].Name != "db-2.1.0.tgz" {
				t.Errorf("%v", a.Blobs())
			}
		})
	}
}

// TestUnsupportedCharts say why.
func TestUnsupportedCharts(t *testing.T) {
	w := newChartWorld(t)
	needs := func(dependency string) map[string]string {
		return map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [" + dependency + "]\n", "d/Chart.yaml": "name: d\nversion: 1.0.0\n"}
	}
	folder := manifest.Artifact{Name: "c", Address: "c", Version: "config"}
	for name, c := range map[string]struct {
		files map[string]string
		a     manifest.Artifact
		want  string
	}{
		"no such version":         {nil, manifest.Artifact{Name: "db", Repository: "https://upstream.test/charts", Version: "9.0.0"}, "has no version =9.0.0 of the chart; it has 3.0.0, 2.0.0"},
		"no such chart":           {nil, manifest.Artifact{Name: "no", Repository: "https://upstream.test/charts", Version: "9.0.0"}, "has no chart no"},
		"no repository":           {nil, manifest.Artifact{Name: "no", Repository: "https://upstream.test/other", Version: "9.0.0"}, "404"},
		"no chart":                {nil, manifest.Artifact{Name: "x", Address: "https://upstream.test/not.tgz", Version: "config"}, "not a chart"},
		"an image":                {nil, manifest.Artifact{Name: "x", Address: "oci://upstream.test/charts/image:1", Version: "config"}, "is not a chart"},
		"another version":         {nil, manifest.Artifact{Name: "x", Address: "https://upstream.test/charts/files/db.tgz", Version: "1.0.0"}, "the chart is db 2.1.0, the config requires version 1.0.0"},
		"no file":                 {nil, manifest.Artifact{Name: "x", Address: "no.tgz", Version: "config"}, "no such file"},
		"no chart's folder":       {map[string]string{"c/x": "y"}, folder, "no Chart.yaml"},
		"a dependency by a name":  {needs("{name: d, version: 1.x, repository: '@stable'}"), folder, `repository "@stable" cannot be queried`},
		"a dependency of nowhere": {needs("{name: d, version: 1.x}"), folder, "no repository is set for it"},
		"a range in a registry":   {needs("{name: mq, version: 3.x, repository: 'oci://upstream.test/charts'}"), folder, "does not search a registry for a range"},
		"another chart there":     {needs("{name: e, version: 1.x, repository: 'file://../d'}"), folder, "contains d 1.0.0"},
		"another version there":   {needs("{name: d, version: 2.x, repository: 'file://../d'}"), folder, "contains d 1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w.base = t.TempDir()
			w.folder(t, c.files)
			c.a.Kind = manifest.Chart
			if _, err := w.newClient(t).PinArtifact(t.Context(), c.a); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestAChangedFolderIsNotItsPin: neither a chart's nor a manifest's.
func TestAChangedFolderIsNotItsPin(t *testing.T) {
	w := newChartWorld(t)
	w.folder(t, map[string]string{"c/Chart.yaml": "name: c\nversion: 1.0.0\n", "a.yaml": "kind: Pod\n"})
	w.client = w.newClient(t)
	for _, a := range []manifest.Artifact{{Name: "c", Kind: manifest.Chart, Address: "c"}, {Name: "a", Kind: manifest.File, Address: "a.yaml"}} {
		pinned, err := w.client.PinArtifact(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := w.client.ReadArtifact(t.Context(), pinned); err != nil || len(content) == 0 {
			t.Errorf("%q, %v", content, err)
		}
		w.folder(t, map[string]string{"c/values.yaml": "a: 1\n", "a.yaml": "kind: " + a.Name + "\n"})
		if err := w.newClient(t).FetchArtifact(t.Context(), pinned); !is[*DigestError](err) {
			t.Errorf("%s: %v", a.Name, err)
		}
		if err := w.client.FetchArtifact(t.Context(), pinned); err != nil {
			t.Errorf("the cache holds it: %v", err)
		}
		if again, err := Local(w.base, a); err != nil || again.SHA256 == pinned.SHA256 {
			t.Errorf("%s, %v", again.SHA256, err)
		}
	}
}

// FuzzParseIndex: whatever a repository serves, a chart that is picked is one
// that was asked for.
func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("entries: {a: [{name: a, version: 1.0.0, urls: [x]}]}"))
	f.Add([]byte("entries: {a: {}}"))
	f.Add([]byte("entries: {a: [{version: v1.0.0+b, urls: ['%zz']}, {version: 1}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parseIndex(text, "a")
		if err != nil {
			return
		}
		want, err := semver.NewConstraint("1.x")
		if err != nil {
			t.Fatal(err)
		}
		e, err := pick(entries, want)
		if err != nil {
			return
		}
		if v, err := semver.NewVersion(e.Version); err != nil || !want.Check(v) || len(e.URLs) == 0 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}
