package registry_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

func sum(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func TestRedigest(t *testing.T) {
	m := registry.Mapper{Host: "site.example", Namespace: "kube", Digests: map[string]string{
		registry.DigestKey("kube/quay.io/a/b", sum("1")):             sum("9"),
		registry.DigestKey("kube/docker.io/library/nginx", sum("2")): sum("8"),
		registry.DigestKey("kube/registry.example-5000/c", sum("3")): sum("7"),
	}}
	for in, want := range map[string]string{
		"image: quay.io/a/b@" + sum("1"):                                  "image: quay.io/a/b@" + sum("9"),
		"image: 'quay.io/a/b:v1@" + sum("1") + "'":                        "image: 'quay.io/a/b:v1@" + sum("9") + "'",
		"--reloader=quay.io/a/b@" + sum("1") + ",quay.io/a/b@" + sum("4"): "--reloader=quay.io/a/b@" + sum("9") + ",quay.io/a/b@" + sum("4"),
		"nginx@" + sum("2"):                                               "nginx@" + sum("8"),
		"docker.io/library/nginx:1@" + sum("2"):                           "docker.io/library/nginx:1@" + sum("8"),
		"registry.example:5000/c@" + sum("3"):                             "registry.example:5000/c@" + sum("7"),
		"quay.io/a/other@" + sum("1"):                                     "quay.io/a/other@" + sum("1"), // which took it as it was
		"digest: " + sum("1"):                                             "digest: " + sum("1"),
		"quay.io/a/b:v1":                                                  "quay.io/a/b:v1",
	} {
		if got := string(m.Redigest([]byte(in))); got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
	words := m.DigestReplacements([]manifest.ImagePin{{Reference: "quay.io/a/b:v1", Digest: sum("1")}, {Reference: "quay.io/a/other:v1", Digest: sum("1")}, {Reference: "docker.io/library/nginx:1", Digest: sum("2")}})
	if want := map[string]string{strings.Repeat("1", 64): strings.Repeat("9", 64), strings.Repeat("2", 64): strings.Repeat("8", 64)}; !maps.Equal(words, want) {
		t.Errorf("%v", words)
	}
	digests, err := m.Redigested([]registry.ImageStatus{
		{Reference: "quay.io/a/b:v1", Published: sum("1"), Digest: sum("9")}, {Reference: "quay.io/a/c:v1", Published: sum("1"), Digest: sum("1")}, {Reference: "quay.io/a/d:v1", Published: sum("1")},
	})
	if want := map[string]string{registry.DigestKey("kube/quay.io/a/b", sum("1")): sum("9")}; err != nil || !maps.Equal(digests, want) {
		t.Errorf("%v, %v", digests, err)
	}
}
