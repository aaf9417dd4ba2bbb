package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// growsByDelta makes a cluster of one bundle, and gives it an add-on by a delta:
// with its base, without it, and with nothing left but the site's registry.
func (s *labSite) growsByDelta(t testing.TB, config string) {
	t.Helper()
	inventory := filepath.Join(s.dir, "site.json")
	if err := os.Remove(s.bundle); err != nil { // it has the add-on already
		t.Fatal(err)
	}
	greeter := ""
	for line := range strings.Lines(s.config) {
		if strings.Contains(line, "name: greeter") {
			greeter = line
		}
	}
	base := s.build(t, filepath.Base(s.variant(t, "first.yaml", greeter, "")))
	install := func(archive string) result {
		t.Helper()
		s.bundle = archive
		return s.install(t, config)
	}
	s.bundle = base
	said(t, s.install(t, filepath.Join(s.dir, "first.yaml")), 0, "create of cluster site: done")
	said(t, s.kubexm(t, "site", "inventory", "-f", config, "--to", inventory, "--strict"), 0, "in 1 bundle", "(running)", "4 hosts")
	text := string(mustRead(t, inventory))
	for _, want := range []string{`"bundle+registry"`, `"kubelet": "v1.32.2"`, `"registry.k8s.io/pause:3.10"`, `"os": "debian"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the inventory says nothing of %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, s.dir) || len(text) > 64<<10 {
		t.Errorf("the inventory has %d bytes, or a path of this machine", len(text))
	}

	delta := s.buildSince(t, "delta", inventory)
	// The base is away: no host is called.
	before := s.logins(t)
	if err := os.Rename(base, base+".away"); err != nil {
		t.Fatal(err)
	}
	said(t, install(delta), 4, "binary/kubelet/v1.32.2/linux/amd64", "--base")
	if after := s.logins(t); len(after) != len(before) || after[0] != before[0] {
		t.Errorf("hosts were called: %v, before %v", after, before)
	}
	if err := os.Rename(base+".away", base); err != nil {
		t.Fatal(err)
	}
	said(t, install(delta), 0, "addon.install-greeter-in-greetings", "create of cluster site: done")
	s.kubectl(t, "-n", "greetings", "rollout", "status", "deployment", "greeter", "--timeout=60s")

	// Both archives are thrown away: the registry has the layers of every image.
	for _, path := range []string{base, delta} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	said(t, s.kubexm(t, "site", "inventory", "-f", config, "--to", inventory), 0, "is no more at "+base, "0 in 0 bundles")
	left := s.buildSince(t, "left", inventory)
	said(t, s.up.run(t, []string{"bundle", "verify", "--allow-unsigned", left}), 0, "are not in it and expected from base")
	said(t, install(left), 0, "create of cluster site: done")
}

// buildSince makes the delta of config.yaml for a site, of a lock that is newer than
// what the site has: an older one is refused.
func (s *labSite) buildSince(t testing.TB, name, inventory string) string {
	t.Helper()
	out := filepath.Join(s.dir, name+".tar.zst")
	r := s.up.must(t, "bundle", "build", "-f", filepath.Join(s.dir, "config.yaml"), "--sources", s.up.paths.Sources, "--versions", s.up.paths.Versions,
		"--lock", out+".lock", "--cache-dir", filepath.Join(s.dir, "cache"), "--since", inventory, out)
	t.Log(r.stdout)
	return out
}
