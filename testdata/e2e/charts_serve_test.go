package e2e

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/images"
)

// sources are the flags that send kubexm to the site's upstream.
func (s *labSite) sources() []string {
	return []string{
		"-f", filepath.Join(s.dir, "config.yaml"), "--sources", s.up.paths.Sources, "--versions", s.up.paths.Versions, "--cache-dir", filepath.Join(s.dir, "cache"),
	}
}

// serveCharts puts the lab's components, the add-ons' images and the charts where
// the internet would have them.
func (s *labSite) serveCharts(t *testing.T, table chartTable) {
	t.Helper()
	rows, err := components.Addons()
	if err != nil {
		t.Fatal(err)
	}
	b := &components.Builder{Root: "../..", Cache: s.cache, Log: t.Output()}
	if err := b.Build(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	rootfs, err := lab.Rootfs(t.Context(), s.cache, lab.Debian12, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	layout, err := images.Addons(t.Context(), s.cache, rootfs, rows, table.StandIns, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	up, err := lab.NewUpstream(t.Context(), lab.Source{
		Config: filepath.Join(s.dir, "config.yaml"), Root: "../..", Cache: s.cache, Log: t.Output(), Layouts: []string{layout},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Charts {
		s.publish(t, up, c)
	}
	l := listen(t)
	serve(t, l, up.Run)
	s.up = &site{dir: s.dir}
	if s.up.paths, err = up.WriteFiles(s.dir, "http://"+l.Addr().String()); err != nil {
		t.Fatal(err)
	}
}

// publish serves a chart as its add-on's source says, packed and listed by helm
// itself; one that a folder is the source of is put beside the config.
func (s *labSite) publish(t *testing.T, up *lab.Upstream, c tried) {
	t.Helper()
	repository, overHTTP := "", strings.HasPrefix(c.Addon.Source, "https://")
	if overHTTP {
		repository = c.Addon.Source
	}
	dir := filepath.Join(s.dir, c.Addon.Name)
	c.copyTo(t, dir)
	if c.Needs != nil {
		archive := filepath.Join(dir, c.Needs.Archive)
		s.repository(t, up, c.Needs.Repository, archive)
		if err := os.Remove(archive); err != nil {
			t.Fatal(err)
		}
	}
	registry, inRegistry := strings.CutPrefix(c.Addon.Source, "oci://")
	if !overHTTP && !inRegistry {
		return
	}
	args := []string{"package", dir, "--destination", s.dir}
	if c.Named != "" { // whose version the release fills in
		args = append(args, "--version", c.Addon.Version, "--app-version", c.Addon.Version)
	}
	s.helm(t, args...)
	archive := filepath.Join(s.dir, c.Addon.Name+"-"+c.Addon.Version+".tgz")
	if overHTTP {
		s.repository(t, up, repository, archive)
		return
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := yaml.Unmarshal([]byte(s.helm(t, "show", "chart", archive)), &meta); err != nil {
		t.Fatal(err)
	}
	if err := up.PublishChart(registry+":"+c.Addon.Version, text, meta); err != nil {
		t.Fatal(err)
	}
}

// repository serves one archive and an index of it.
func (s *labSite) repository(t *testing.T, up *lab.Upstream, address, archive string) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(archive)
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.helm(t, "repo", "index", dir)
	index, err := os.ReadFile(filepath.Join(dir, "index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for at, body := range map[string][]byte{"index.yaml": index, name: text} {
		if err := up.Publish(address+"/"+at, body); err != nil {
			t.Fatal(err)
		}
	}
}

// helm runs the lab's helm on this machine, for what a publisher does with it.
func (s *labSite) helm(t *testing.T, args ...string) string {
	t.Helper()
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := components.Find(rows, "helm")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.Dir(s.cache), "helm"), args...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// copyTo copies a chart out of its module, writable where the module's is not.
func (c tried) copyTo(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", c.Module)
	cmd.Dir = t.TempDir()                         // outside of any module
	cmd.Env = append(os.Environ(), "GOPROXY=off") // what `make modules` has brought: a test asks nobody outside
	out, err := cmd.Output()
	var m struct{ Dir, Sum string }
	if err != nil || json.Unmarshal(out, &m) != nil || m.Dir == "" {
		t.Fatalf("module %s is not here: make modules brings it", c.Module)
	}
	if m.Sum != c.Sum {
		t.Fatalf("module %s has sum %s, want %s", c.Module, m.Sum, c.Sum)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(m.Dir, filepath.FromSlash(c.Path)))); err != nil {
		t.Fatal(err)
	}
	if c.Named != "" {
		if err := os.Rename(filepath.Join(dir, c.Named), filepath.Join(dir, "Chart.yaml")); err != nil {
			t.Fatal(err)
		}
	}
}
