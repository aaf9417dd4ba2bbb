package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// growing is a site whose second bundle is for one architecture more than its
// first: the delta is what that takes.
type growing struct {
	*site
	newer, base string // config and archive
	inventory   string
}

func newGrowing(t *testing.T) *growing {
	t.Helper()
	const version = "v1.34.10"
	dir := t.TempDir()
	ports := closed(t)
	older, newer := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "newer.yaml")
	for path, arch := range map[string]string{older: "", newer: ", arch: arm64"} {
		if err := os.WriteFile(path, []byte(cluster(version, ports, arch, flannel)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := openSite(t, newer, upstream.Options{Scale: 0.02}, false)
	g := &growing{site: s, newer: newer, base: filepath.Join(s.dir, "base.tar.zst"), inventory: filepath.Join(s.dir, "site.json")}
	s.config = older
	s.must(t, s.pin()...)
	s.must(t, s.build(g.base, s.newFolder(t, "cache-1"))...)
	s.config, s.lock = newer, filepath.Join(s.dir, "newer.lock")
	s.must(t, s.pin()...)
	return g
}

// TestDelta takes one through its life: the site is asked, the delta built, used
// with its base, refused without, and made the whole bundle again.
func TestDelta(t *testing.T) {
	g := newGrowing(t)
	password := "SSH_PASSWORD=canary-of-ssh"
	// Nobody listens at the hosts: what lies on this machine is told all the same.
	ask := func(more ...string) []string {
		return append([]string{"site", "inventory", "--allow-unsigned", "-f", g.newer, "--workdir", g.dir, "--bundle", g.base}, more...)
	}
	said(t, g.run(t, ask("--partial", "--out", g.inventory), password), 0, "not read: host m1 (127.0.0.1)", "connection refused", "in 1 bundle", "--since site.json")
	if r := g.run(t, ask(), password); r.code != 3 || r.stdout != "" {
		t.Errorf("a host that is not reached: exit %d, %q", r.code, r.stdout)
	}
	if r := g.run(t, ask("--strict"), password); r.code != 3 || r.stdout != "" {
		t.Errorf("strict: exit %d, %q", r.code, r.stdout)
	}
	if r := g.run(t, ask("--partial"), password); r.code != 0 || !json.Valid([]byte(r.stdout)) || strings.Contains(r.stdout+r.stderr, "canary-of-ssh") {
		t.Errorf("to standard output: exit %d", r.code)
	}
	if info, err := os.Stat(g.inventory); err != nil || info.Size() > 64<<10 {
		t.Errorf("the inventory: %v, %v", info, err)
	}
	full := filepath.Join(g.dir, "full.tar.zst")
	delta := g.build1(t, "delta", "--since", g.inventory)
	g.onlyWhatIsLacking(t)
	g.must(t, g.build(full, g.newFolder(t, "cache-full"))...)
	if again := g.build1(t, "again", "--since", g.inventory); hash(t, again) != hash(t, delta) {
		t.Error("the same lock and inventory gave another delta")
	}
	g.read(t, delta, full)
	g.refused(t, delta, full)

	whole := filepath.Join(g.dir, "whole.tar.zst")
	said(t, g.run(t, []string{"bundle", "join", "--allow-unsigned", delta, whole, "--base", g.base}), 0, "complete bundle")
	if hash(t, whole) != hash(t, full) {
		t.Error("delta and base are not the whole bundle, byte for byte")
	}
	said(t, g.run(t, []string{"bundle", "join", "--allow-unsigned", delta, whole, "--base", g.base}), 2, "already exists")
	said(t, g.run(t, []string{"bundle", "join", "--allow-unsigned", delta, "--base", g.base}), 2, "the name of the complete bundle is missing")
	said(t, g.run(t, []string{"bundle", "join", "--allow-unsigned", full, whole + "2", "--base", g.base}), 2, "is a complete bundle and needs no base")
	t.Run("volumes", func(t *testing.T) { g.inVolumes(t, delta, full) })
	t.Run("install", func(t *testing.T) { g.installs(t, delta, full, password) })
}

// build1 builds the newer bundle with a cache of its own.
func (g *growing) build1(t *testing.T, name string, more ...string) string {
	t.Helper()
	out := filepath.Join(g.dir, name+".tar.zst")
	g.up.Forget()
	r := g.must(t, g.build(out, g.newFolder(t, "cache-"+name), more...)...)
	if !strings.Contains(r.stdout, "; the site has the rest") {
		t.Errorf("does not say what it saved:\n%s", r.stdout)
	}
	t.Log(r.stdout)
	return out
}

// held reads which blobs the inventory lists.
func (g *growing) held(t *testing.T) map[string]manifest.BlobLocation {
	t.Helper()
	f, err := os.Open(g.inventory)
	if err != nil {
		t.Fatal(err)
	}
	i, problems := manifest.DecodeInventory(f)
	if err := errors.Join(problems.Err(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return i.Blobs
}

// onlyWhatIsLacking looks at what upstream was asked for since the build began.
func (g *growing) onlyWhatIsLacking(t *testing.T) {
	t.Helper()
	held, lock := g.held(t), g.pinned(t)
	if len(held) < 20 {
		t.Fatalf("the site has only %d blobs", len(held))
	}
	asked := g.up.Counts()
	if len(asked) == 0 {
		t.Error("nothing was asked for at all")
	}
	for path := range asked {
		if _, d, ok := strings.Cut(path, "/blobs/"); ok && held[d] != "" {
			t.Errorf("downloaded %s, which the site has", path)
		}
	}
	for _, a := range lock.Artifacts {
		all := true
		for _, b := range a.Blobs() {
			all = all && held["sha256:"+b.SHA256] != ""
		}
		at := "/" + strings.TrimPrefix(strings.TrimPrefix(a.Address, "https://"), "http://")
		if n := asked[at]; all == (n.Bytes > 0) {
			t.Errorf("%s: the site has it: %v; downloaded %d bytes", a.ID, all, n.Bytes)
		}
	}
}

// read runs every command that reads a bundle over the delta.
func (g *growing) read(t *testing.T, delta, full string) {
	t.Helper()
	for _, args := range [][]string{{"bundle", "ls", "@"}, {"bundle", "show", "@", "--part", "lock"}, {"bundle", "sbom", "@"}} {
		var out [2]string
		for i, path := range []string{delta, full} {
			own := append([]string{}, args...)
			own[2] = path
			out[i] = g.must(t, own...).stdout
		}
		if out[0] != out[1] {
			t.Errorf("%v prints other things of a delta", args)
		}
	}
	root := g.root(t, g.base)
	if g.root(t, delta) != g.root(t, full) {
		t.Error("the delta has another root than the whole bundle")
	}
	said(t, g.run(t, []string{"bundle", "show", delta}), 0, "delta      a delta for cluster refused: ", "expected from base "+root)
	said(t, g.run(t, []string{"bundle", "diff", delta, full}), 0, "0 added, 0 removed, 0 changed", "lacks 0 B")
	verify := []string{"bundle", "verify", "--allow-unsigned", delta}
	said(t, g.run(t, verify), 0, "contents verified", "are left out and expected from base "+root)
	said(t, g.run(t, append(verify, "--base", g.base)), 0, "complete with its base")
	said(t, g.run(t, []string{"bundle", "check", "--allow-unsigned", delta}), 0, "complete for cluster refused", "expected from base")
	layouts := [2]string{filepath.Join(g.dir, "layout-full"), filepath.Join(g.dir, "layout-delta")}
	g.must(t, "bundle", "extract", "--allow-unsigned", full, "--layout", layouts[0])
	g.must(t, "bundle", "extract", "--allow-unsigned", delta, "--layout", layouts[1], "--base", g.base)
	for _, name := range []string{"index.json", "blobs/sha256"} {
		a, b := filepath.Join(layouts[0], name), filepath.Join(layouts[1], name)
		if name == "index.json" && hash(t, a) != hash(t, b) || name != "index.json" && fmt.Sprint(names(t, a)) != fmt.Sprint(names(t, b)) {
			t.Errorf("extracted another %s", name)
		}
	}
	said(t, g.run(t, []string{"bundle", "extract", "--allow-unsigned", delta, "--files", filepath.Join(g.dir, "arm"), "binary/kubelet/v1.34.10/linux/arm64"}), 0, "1 extracted")
}

func (g *growing) root(t *testing.T, path string) string {
	t.Helper()
	var v struct{ Root string }
	if err := json.Unmarshal([]byte(g.must(t, "bundle", "show", path, "-o", "json").stdout), &v); err != nil {
		t.Fatal(err)
	}
	return v.Root
}

// refused holds the delta against wrong bases, and wrong deltas against the base.
func (g *growing) refused(t *testing.T, delta, full string) {
	t.Helper()
	both := []string{g.root(t, full), g.root(t, g.base)}
	verify := func(path, base string) result {
		return g.run(t, []string{"bundle", "verify", "--allow-unsigned", path, "--base", base})
	}
	said(t, verify(delta, full), 4, append(both, "not a base of delta", "try ")...)
	said(t, verify(delta, filepath.Join(g.dir, "absent.tar.zst")), 2, "no such file")
	said(t, verify(delta, g.newer), 2, "is a cluster config")
	said(t, g.run(t, []string{"bundle", "extract", "--allow-unsigned", delta, "--files", filepath.Join(g.dir, "none")}), 4, append(both, "binary/kubelet/v1.34.10/linux/amd64: 1 blob,")...)
	said(t, g.run(t, []string{"bundle", "push", "--allow-unsigned", delta, "127.0.0.1:1/x:1"}), 4, append(both, "image/registry.k8s.io/pause")...)
	if names := names(t, g.dir); fmt.Sprint(names) == "" || strings.Contains(fmt.Sprint(names), "none") {
		t.Errorf("a folder was made before the refusal: %v", names)
	}

	// A base that is damaged where the delta needs it.
	bad := filepath.Join(g.dir, "bad.tar.zst")
	text, err := os.ReadFile(g.base)
	if err != nil {
		t.Fatal(err)
	}
	var largest archive.Member
	held := g.held(t)
	for _, m := range members(t, g.base) {
		if held[m.Digest] != "" && m.Size > largest.Size {
			largest = m
		}
	}
	text[largest.Offset+largest.Length/2] ^= 1
	if err := os.WriteFile(bad, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said(t, verify(delta, bad), 4, "base "+bad, largest.Name)
	said(t, g.run(t, []string{"bundle", "join", "--allow-unsigned", delta, filepath.Join(g.dir, "never.tar.zst"), "--base", bad}), 4, largest.Name)
	for _, n := range names(t, g.dir) {
		if strings.Contains(n, "never") {
			t.Errorf("%s was left", n)
		}
	}

	// Inventories that do not do.
	other := strings.Replace(string(mustRead(t, g.inventory)), `"cluster": "refused"`, `"cluster": "prod"`, 1)
	build := func(inventory string) result {
		return g.run(t, g.build(filepath.Join(g.dir, "never.tar.zst"), filepath.Join(g.dir, "cache-delta"), "--since", inventory))
	}
	said(t, build(g.write(t, "other.json", other)), 2, "the inventory is of cluster prod, the config of cluster refused", "try ")
	said(t, build(g.write(t, "odd.json", `{"kind": "SiteInventory", "size": 3, "hosts": {}}`)), 2, "odd.json: error: hosts: an object is not a list", "size: is not a field", "2 errors")
	said(t, build(filepath.Join(g.dir, "absent.json")), 2, "kubexm site inventory")
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inVolumes carries the delta in volumes, and its base too.
func (g *growing) inVolumes(t *testing.T, delta, full string) {
	dir := g.newFolder(t, "volumes")
	base := filepath.Join(dir, "base.tar.zst")
	if err := os.WriteFile(base, mustRead(t, g.base), 0o600); err != nil {
		t.Fatal(err)
	}
	g.must(t, "bundle", "split", base, "--size", "1MiB")
	if err := os.Remove(base); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "delta.tar.zst")
	g.must(t, g.build(out, filepath.Join(g.dir, "cache-delta"), "--since", g.inventory, "--volume-size", "1MiB")...)
	said(t, g.run(t, []string{"bundle", "verify", "--allow-unsigned", out + ".001", "--base", base + ".001"}), 0, "complete with its base")
	whole := filepath.Join(dir, "whole.tar.zst")
	g.must(t, "bundle", "join", "--allow-unsigned", out+".001", whole, "--base", base+".001")
	if hash(t, whole) != hash(t, full) {
		t.Error("volumes and volumes are not the whole bundle")
	}
	g.must(t, "bundle", "join", out+".001")
	if !bytes.Equal(mustRead(t, out), mustRead(t, delta)) {
		t.Error("the delta's volumes are not the delta")
	}
}

// installs tries the delta with no base, with a wrong one, and with its own. The
// hosts do not answer: whoever gets that far has found the bundle to be whole.
func (g *growing) installs(t *testing.T, delta, full, password string) {
	install := func(more ...string) result {
		return g.run(t, append([]string{"install", "--allow-unsigned", "--workdir", g.dir, "--bundle", delta, "-f", g.newer}, more...), password)
	}
	said(t, install(), 4, "delta "+g.root(t, full), "it was built against "+g.root(t, g.base), "binary/kubelet/v1.34.10/linux/amd64", "try   specify the archive with that root with --base")
	said(t, install("--base", full), 4, "not a base of delta")
	said(t, install("--base", g.base), 3, "connection refused", "nothing was changed on any host")

	// The record of an earlier run names the base.
	record := filepath.Join(g.dir, ".kubexm", "refused", "applied", "bundles.json")
	text, err := json.Marshal([]map[string]any{{"root": g.root(t, g.base), "path": g.base, "bytes": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said(t, install(), 3, "connection refused")
	if err := os.Rename(g.base, g.base+".away"); err != nil {
		t.Fatal(err)
	}
	said(t, install(), 4, "binary/kubelet/v1.34.10/linux/amd64")
}
