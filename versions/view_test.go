package versions

import (
	"strings"
	"testing"
)

func TestKubernetesRelease(t *testing.T) {
	c := load(t)
	newest := c.Versions(Kubernetes)[0]
	for said, want := range map[string]string{
		"v1.32": "v1.32.13", "1.32": "v1.32.13", "v1.32.4": "v1.32.4", "1.32.4": "v1.32.4", Minor(newest): newest,
		"1": "", "v1.99": "", "": "", "v": "", "newest": "", "v1.32.4.5": "", "1.032": "",
	} {
		got, ok := c.KubernetesRelease(said)
		if got != want || ok != (want != "") {
			t.Errorf("%q means %q", said, got)
		}
	}
}

func TestByFamily(t *testing.T) {
	c, problems := loadOver(t, overlayHead+"components: {aardvark: {kind: image, images: [{name: a, reference: h.io/a:1}], versions: {v1: {}}}}")
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	got := c.ByFamily()
	if len(got) != len(c.Names()) || got[0] != "kube-apiserver" || got[len(got)-1] != "aardvark" {
		t.Errorf("%v", got)
	}
}

func TestTogether(t *testing.T) {
	c := load(t)
	tests := []struct {
		name, version, kubernetes string
		want                      bool
	}{
		{"kubelet", "1.32.4", "v1.32.4", true},
		{"kubelet", "v1.32.4", "v1.32.5", false},
		{"kubernetes", "v1.32.4", "v1.32.4", true},
		{"containerd", "1.7.6", "v1.32.4", false},
		{"containerd", "1.7.6", "v1.28.4", true},
		{"runc", "v1.1.0", "v1.36.3", true},
		{"runc", "v0.0.1", "v1.36.3", false},
		{"none", "v1", "v1.36.3", false},
	}
	for _, tt := range tests {
		if got := c.Compatible(tt.name, tt.version, tt.kubernetes); got != tt.want {
			t.Errorf("%s %s with %s: %v", tt.name, tt.version, tt.kubernetes, got)
		}
	}
}

func TestDigestSources(t *testing.T) {
	c, problems := loadOver(t, overlayHead+"components: {kube-proxy: {versions: {v1.32.5: {sha256: {amd64: "+hexA+"}}}}}\nimages: {\"registry.k8s.io/pause:3.10\": \"sha256:"+hexA+"\"}")
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	for at, want := range map[string]string{
		"kubelet v1.32.4": "catalog", "kube-proxy v1.32.4": "published registry", "kube-proxy v1.32.5": "catalog published registry",
		"pause 3.10": "catalog", "pause 3.9": "registry", "calico v3.31.7": "catalog registry", "cilium 1.17.15": "catalog", "kubernetes v1.32.4": "",
	} {
		name, version, _ := strings.Cut(at, " ")
		spelled, r, _ := c.Release(name, version)
		var words []string
		for _, source := range c.DigestSources(r, spelled) {
			words = append(words, string(source))
		}
		got := strings.Join(words, " ")
		if got != want {
			t.Errorf("%s: %s", at, got)
		}
	}
}
