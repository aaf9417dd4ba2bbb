package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/chart"
)

// tgz makes an archive of names and contents, in this order.
func tgz(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var hs []tar.Header
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, tar.Header{Typeflag: tar.TypeReg, Name: pairs[i], Mode: 0o644, Size: int64(len(pairs[i+1]))})
	}
	return members(t, hs, func(i int) string { return pairs[2*i+1] })
}

func members(t testing.TB, hs []tar.Header, text func(int) string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := range hs {
		if err := w.WriteHeader(&hs[i]); err != nil {
			t.Fatal(err)
		}
		if hs[i].Size > 0 {
			if _, err := io.WriteString(w, text(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const about = "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: 4.5\n"

func TestAChartIsRenderedAsHelmDoes(t *testing.T) {
	sub := tgz(t, "db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n", "db/templates/db.yaml", "image: db:{{ .Values.tag }}\n", "db/values.yaml", "tag: 1\n")
	c := read(t, tgz(t,
		"web/Chart.yaml", about+"dependencies:\n- {name: db, version: 0.1.x, condition: db.enabled, repository: 'https://charts.example'}\n",
		"web/values.yaml", "replicas: 1000000\ndb: {enabled: false}\n",
		"web/charts/db-0.1.0.tgz", string(sub),
		"web/crds/kinds.yaml", "kind: CustomResourceDefinition\n",
		"web/templates/NOTES.txt", "hello",
		"web/templates/_helpers.tpl", `{{ define "name" }}{{ .Release.Name }}{{ end }}`,
		"web/templates/hook.yaml", "annotations: {helm.sh/hook: pre-install}\n",
		"web/templates/empty.yaml", "{{ if .Values.nothing }}x{{ end }}",
		"web/templates/web.yaml", `{{ include "name" . }} {{ .Release.Namespace }} {{ .Capabilities.KubeVersion }} {{ .Values.replicas }} `+
			`{{ .Capabilities.APIVersions.Has "apps/v1" }} {{ .Capabilities.APIVersions.Has "my.example/v1" }} {{ lookup "v1" "Pod" "a" "b" }}`))
	if m := c.Meta; m.Name != "web" || m.Version != "1.2.3" || m.AppVersion != "4.5" || c.FileName() != "web-1.2.3.tgz" {
		t.Errorf("%+v", m)
	}
	o := chart.Options{Release: "mine", Namespace: "shop", Kubernetes: "v1.32.2"}
	want := map[string]string{
		"web/crds/kinds.yaml": "kind: CustomResourceDefinition\n", "web/templates/hook.yaml": "annotations: {helm.sh/hook: pre-install}\n",
		"web/templates/web.yaml": "mine shop v1.32.2 1e+06 true false map[]",
	}
	if d := cmp.Diff(want, rendered(t, c, o)); d != "" {
		t.Error(d)
	}
	o.Values, o.APIVersions = []byte("db: {enabled: true, tag: 2}\n"), []string{"my.example/v1"}
	want["web/charts/db/templates/db.yaml"] = "image: db:2\n"
	want["web/templates/web.yaml"] = "mine shop v1.32.2 1e+06 true true map[]"
	if d := cmp.Diff(want, rendered(t, c, o)); d != "" {
		t.Error(d)
	}
}

func read(t testing.TB, archive []byte) *chart.Chart {
	t.Helper()
	c, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rendered(t *testing.T, c *chart.Chart, o chart.Options) map[string]string {
	t.Helper()
	files, err := c.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		got[f.Name] = string(f.Data)
	}
	return got
}

// TestAFolderIsPackedTheSameEveryTime, whatever its times and modes are.
func TestAFolderIsPackedTheSameEveryTime(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": about + "dependencies: [{name: db, version: 1.x, repository: 'file://../db'}, {name: held, version: 1.x}]\n", "values.yaml": "a: 1\n", "templates/a.yaml": "a",
		".helmignore": "*.secret\nold/\n", "my.secret": "x", "old/x": "x", "charts/held/Chart.yaml": "name: held\nversion: 1.0.0\n",
		"Chart.lock": "dependencies: [{name: db, version: 1.4.0}]\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	pack := func() []byte {
		c, err := chart.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]chart.Dependency{{Name: "db", Version: "1.4.0", Repository: "file://../db"}}, c.Missing()); d != "" {
			t.Error(d)
		}
		if c, err = c.With(tgz(t, "db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.4.0\n")); err != nil {
			t.Fatal(err)
		}
		if m := c.Missing(); len(m) > 0 {
			t.Errorf("%v", m)
		}
		b, err := c.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := pack()
	if err := os.Chmod(filepath.Join(dir, "values.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, pack()) {
		t.Error("two archives of one folder differ")
	}
	var names []string
	for _, f := range read(t, first).Files {
		names = append(names, f.Name)
	}
	if d := cmp.Diff("Chart.lock Chart.yaml charts/db-1.4.0.tgz charts/held/Chart.yaml templates/a.yaml values.yaml", strings.Replace(strings.Join(names, " "), ".helmignore ", "", 1)); d != "" {
		t.Error(d)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "templates", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := chart.ReadDir(dir); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHostileArchives are refused, each for its own reason.
func TestHostileArchives(t *testing.T) {
	with := func(more ...string) []byte { return tgz(t, append([]string{"web/Chart.yaml", about}, more...)...) }
	zeros := strings.Repeat("\x00", 5<<20)
	bomb := func(n int) []byte {
		pairs := []string{"web/Chart.yaml", about}
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("web/templates/%d", i), zeros)
		}
		return tgz(t, pairs...)
	}
	link := func(kind byte, target string) []byte {
		return members(t, []tar.Header{{Typeflag: tar.TypeReg, Name: "web/Chart.yaml", Size: int64(len(about))}, {Typeflag: kind, Name: "web/templates/a", Linkname: target}},
			func(int) string { return about })
	}
	nested := with("web/values.yaml", "a: 1")
	for range 8 {
		nested = with("web/charts/web.tgz", string(nested))
	}
	twice := with("web/charts/a.tgz", string(bomb(2)), "web/charts/b.tgz", string(bomb(2)))
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"not gzip":             {[]byte("PK"), "not gzip"},
		"not tar":              {gz(t, "hello"), "not tar"},
		"cut":                  {with()[:60], "not tar"},
		"no Chart.yaml":        {tgz(t, "web/values.yaml", "a: 1"), "no Chart.yaml"},
		"called ..":            {tgz(t, "web/Chart.yaml", "name: ..\nversion: 1.0.0"), `name is ".."`},
		"called a/b":           {tgz(t, "web/Chart.yaml", "name: a/b\nversion: 1.0.0"), "name is"},
		"no version":           {tgz(t, "web/Chart.yaml", "name: a\n"), "version"},
		"dependency called ..": {tgz(t, "web/Chart.yaml", about+"dependencies: [{name: .., version: 1.x}]"), "depends on a chart with the name"},
		"parent":               {with("web/../../etc/passwd", "x"), "points outside the chart"},
		"absolute":             {with("/etc/passwd", "x"), "is not in a folder"},
		"within absolute":      {with("web//etc/passwd", "x"), "points outside the chart"},
		"no folder":            {with("values.yaml", "x"), "is not in a folder"},
		"two folders":          {with("other/values.yaml", "x"), "more than one top folder"},
		"backslash":            {with(`web\..\..\x`, "x"), "invalid name"},
		"drive":                {with("web/C:/x", "x"), "points outside the chart"},
		"twice":                {with("web/Chart.yaml", "name: other"), "duplicate entry"},
		"symlink":              {link(tar.TypeSymlink, "/etc/passwd"), "link"},
		"hard link":            {link(tar.TypeLink, "web/Chart.yaml"), "link"},
		"device":               {link(tar.TypeChar, ""), "device"},
		"large file":           {with("web/templates/x", zeros+"0"), "more than 5242880 bytes"},
		"bomb":                 {bomb(3), "more than 12582912 bytes"},
		"bombs within":         {twice, "more than 12582912 bytes"},
		"many files":           {members(t, many(20001), func(int) string { return "" }), "more than 20000 files"},
		"many folders":         {members(t, folders(20001), func(int) string { return "" }), "more than 20000 files"},
		"charts without end":   {nested, "more than 6 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chart.ReadWithin(bytes.NewReader(c.archive), 12<<20)
			var format *chart.FormatError
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &format) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func many(n int) []tar.Header {
	hs := make([]tar.Header, n)
	for i := range hs {
		hs[i] = tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("web/templates/%d", i)}
	}
	return hs
}

func folders(n int) []tar.Header {
	hs := many(n)
	for i := range hs {
		hs[i].Typeflag, hs[i].Name = tar.TypeDir, hs[i].Name+"/"
	}
	return hs
}

func gz(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(strings.Repeat(text, 200))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatCannotBeRendered says why.
func TestWhatCannotBeRendered(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"a dependency is missing": {[]string{"web/Chart.yaml", about + "dependencies: [{name: db, version: 1.x}]"}, "depends on db, which is not in its folder charts"},
		"a library":               {[]string{"web/Chart.yaml", about + "type: library\n"}, "is a library"},
		"another Kubernetes":      {[]string{"web/Chart.yaml", about + "kubeVersion: '>=1.99.0-0'\n"}, "is for Kubernetes >=1.99.0-0"},
		"a value is missing":      {[]string{"web/Chart.yaml", about, "web/templates/a.yaml", `{{ required "say which" .Values.which }}`}, "say which"},
		"a broken template":       {[]string{"web/Chart.yaml", about, "web/templates/a.yaml", `{{ if }}`}, "a.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, tgz(t, c.files...)).Render(chart.Options{Release: "x", Kubernetes: "v1.32.2"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// FuzzRead: what is read is packed and read again as the same chart, and nothing
// in it leads out of its folder.
func FuzzRead(f *testing.F) {
	f.Add(tgz(f, "web/Chart.yaml", about))
	f.Add(tgz(f, "web/Chart.yaml", about, "web/charts/a.tgz", string(tgz(f, "a/Chart.yaml", "name: a\nversion: 1.0.0\n"))))
	f.Add(tgz(f, "web/Chart.yaml", about+"dependencies: [{name: a, version: 1.x}]", "web/Chart.lock", "dependencies: [{name: a, version: 1.2.0}]"))
	f.Add(members(f, []tar.Header{{Typeflag: tar.TypeSymlink, Name: "web/Chart.yaml", Linkname: "/etc/passwd"}}, nil))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		c, err := chart.Read(bytes.NewReader(archive))
		if err != nil {
			return
		}
		for _, file := range c.Files {
			if !filepath.IsLocal(file.Name) {
				t.Errorf("%q points outside the chart", file.Name)
			}
		}
		packed, err := c.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Files, read(t, packed).Files); d != "" {
			t.Error(d)
		}
	})
}
