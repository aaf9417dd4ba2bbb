package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// grown writes the config with one add-on more, a chart: the bundle of the cluster holds
// no helm, and what comes by delta does.
func (s *labSite) grown(t testing.TB) string {
	t.Helper()
	const addon = "  addons:\n"
	return s.variant(t, "grown.yaml", addon, addon+"    - {name: greeter, type: helm, source: greeter, namespace: greetings, values: {replicas: 2}}\n")
}

// growsByDelta gives a cluster an add-on by a delta: with its base, without it, and
// with nothing left but the site's registry.
func (s *labSite) growsByDelta(t testing.TB) {
	t.Helper()
	grown := s.grown(t)
	inventory, base := filepath.Join(s.dir, "site.json"), s.bundle
	install := func(archive string) result {
		t.Helper()
		s.bundle = archive
		return s.install(t, grown)
	}
	said(t, s.kubexm(t, "site", "inventory", "-f", grown, "--out", inventory, "--strict"), 0, "in 1 bundle", "(running)", "6 hosts")
	text := string(mustRead(t, inventory))
	for _, want := range []string{`"bundle+registry"`, `"kubelet": "v1.32.2"`, `"registry.k8s.io/pause:3.10"`, `"os": "debian"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the inventory says nothing of %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, s.dir) || len(text) > 64<<10 {
		t.Errorf("the inventory has %d bytes, or a path of this machine", len(text))
	}

	delta := s.buildSince(t, "delta", grown, inventory)
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
	if got := s.kubectl(t, "-n", "greetings", "get", "deployment/greeter", "-o", "jsonpath={.status.readyReplicas}"); got != "2" {
		t.Errorf("of the add-on by helm %q pods are ready, and its values ask for 2", got)
	}

	// Both archives are thrown away: the registry has the layers of every image.
	for _, path := range []string{base, delta} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	said(t, s.kubexm(t, "site", "inventory", "-f", grown, "--out", inventory), 0, "is no longer at "+base, "0 in 0 bundles")
	left := s.buildSince(t, "left", grown, inventory)
	said(t, s.up.run(t, []string{"bundle", "verify", "--allow-unsigned", left}), 0, "are left out and expected from base")
	said(t, install(left), 0, "create of cluster site: done")
	s.smoke(t)

	// What comes next finds the cluster's config and bundle where they were.
	for from, to := range map[string]string{grown: filepath.Join(s.dir, "config.yaml"), left: base} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	s.bundle = base
}

// buildSince makes the delta of a config for a site, of a lock that is newer than
// what the site has: an older one is refused.
func (s *labSite) buildSince(t testing.TB, name, config, inventory string) string {
	t.Helper()
	out := filepath.Join(s.dir, name+".tar.zst")
	r := s.up.must(t, "bundle", "build", "-f", config, "--sources", s.up.paths.Sources, "--versions", s.up.paths.Versions,
		"--lock", out+".lock", "--cache-dir", s.fetched(), "--since", inventory, out)
	t.Log(r.stdout)
	return out
}
