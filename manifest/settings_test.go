package manifest

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
)

// TestCiphers: the list is what crypto/tls, which Kubernetes is built with, holds to
// be safe, offers for TLS 1.2 and does with forward secrecy and authentication.
func TestCiphers(t *testing.T) {
	var want []string
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) && strings.Contains(s.Name, "_ECDHE_") && (strings.Contains(s.Name, "_GCM_") || strings.Contains(s.Name, "_CHACHA20_")) {
			want = append(want, s.Name)
		}
	}
	got := strings.Split(Ciphers, ",")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("ciphers\n%q, want\n%q", got, want)
	}
}

// TestSettings: each row says what it is for and what changes it, once.
func TestSettings(t *testing.T) {
	root, seen := ConfigFields(), map[string]bool{}
	f, ok := root.Find("spec.kubernetes.hardening.relax")
	if !ok {
		t.Fatal("no switch")
	}
	groups := map[string]bool{}
	for _, s := range Settings() {
		id := s.Of + " " + s.Name
		if seen[id] || s.Value == "" || s.Why == "" || strings.HasPrefix(s.Name, "-") {
			t.Errorf("%+v", s)
		}
		seen[id] = true
		if s.Group != "" && !slices.Contains(f.Enum, s.Group) {
			t.Errorf("%s: nothing relaxes %s", id, s.Group)
		}
		groups[s.Group] = true
		if _, ok := root.Find(s.Field); s.Field != "" && !ok {
			t.Errorf("%s: %s is no field", id, s.Field)
		}
		if s.Field == "" && s.Group == "" {
			t.Errorf("%s: nothing changes it", id)
		}
	}
	for _, word := range f.Enum {
		if !groups[word] {
			t.Errorf("%s relaxes nothing", word)
		}
	}
}

// TestRelaxing: a word leaves out its group and no other setting.
func TestRelaxing(t *testing.T) {
	all := []string{OfAPIServer, OfControllerManager, OfScheduler, OfKubelet, OfEtcd, OfKernel}
	count := func(version string, relax ...string) (n int, groups []string) {
		c := &Cluster{}
		c.Spec.Kubernetes.Version, c.Spec.Kubernetes.Hardening.Relax = version, relax
		for _, of := range all {
			for _, s := range c.SettingsOf(of) {
				n++
				groups = append(groups, s.Group)
			}
		}
		return n, groups
	}
	if n, _ := count("v1.32.2"); n != len(Settings()) {
		t.Errorf("%d of %d settings", n, len(Settings()))
	}
	if n, groups := count("v1.31.9"); n != len(Settings())-1 || slices.Contains(groups, RelaxAnonymous) {
		t.Errorf("1.31 does not know what 1.32 does, and gets %d settings", n)
	}
	for _, word := range []string{RelaxAnonymous, RelaxAudit, RelaxEncryption, RelaxKernelDefaults, RelaxKubeletCertificates, RelaxProfiling, RelaxTLS} {
		n, groups := count("v1.32.2", word)
		want := len(slices.DeleteFunc(Settings(), func(s Setting) bool { return s.Group == word }))
		if n != want || slices.Contains(groups, word) {
			t.Errorf("%s leaves %d of %d settings", word, n, want)
		}
	}
}
