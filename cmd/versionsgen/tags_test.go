package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manifestOne = `apiVersion: apps/v1
kind: DaemonSet
spec:
  template:
    spec:
      initContainers:
      - {name: a, image: "example.io/plugin:v2"} # image: example.io/never:v1
      containers:
      - {name: b, image: "example.io/net:v1.0.0@sha256:DIGEST"}
---
kind: CustomResourceDefinition
spec: {properties: {image: {type: string}}}
`

// repository makes a git repository with one commit and tag for each text.
func repository(t *testing.T, dir, file string, commits ...[2]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "tag.gpgSign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	for _, c := range commits {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(c[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", file)
		git("commit", "-q", "-m", c[0], "--allow-empty")
		git("tag", c[0])
	}
}

func TestReadClones(t *testing.T) {
	dir := t.TempDir()
	digest := strings.Repeat("a", 64)
	one := strings.ReplaceAll(manifestOne, "DIGEST", digest)
	repository(t, filepath.Join(dir, "owner", "net"), "net.yaml",
		[2]string{"v0.9.0", "not: asked"}, [2]string{"v1.0.0", one},
		[2]string{"v1.1.0", one + "# the tag of another release's manifest\n"}, [2]string{"v2.0.0-rc.1", one})
	repository(t, filepath.Join(dir, "owner+plain", "repo"), "list.txt", [2]string{"chart-3.1.0", ""})
	got, err := readClones(t.Context(), dir, map[string]*source{
		"net":   {Tags: &tags{Repository: "owner/net", Manifest: "net.yaml", Take: ">=1"}},
		"plain": {Tags: &tags{Repository: "owner/plain", Tag: "chart-"}},
		"other": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]tagged{
		"net": {"1.0.0": {
			SHA256: sha(one),
			Images: map[string]string{"example.io/plugin:v2": "", "example.io/net:v1.0.0": "sha256:" + digest},
		}},
		"plain": {"3.1.0": {}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestReadClonesTakesImagesFromAList(t *testing.T) {
	dir := t.TempDir()
	repository(t, filepath.Join(dir, "owner", "store"), "images.txt", [2]string{"v1.0.0", "store/manager:v1.0.0\n"})
	got, err := readClones(t.Context(), dir, map[string]*source{
		"store": {Tags: &tags{Repository: "owner/store", Manifest: "images.txt", List: "images.txt"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"docker.io/store/manager:v1.0.0": ""}, got["store"]["1.0.0"].Images); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a", "b"}, lines([]byte("# all\na\n\n b \n"))); d != "" {
		t.Error(d)
	}
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestReadClonesNamesWhatFails(t *testing.T) {
	dir := t.TempDir()
	repository(t, filepath.Join(dir, "owner", "net"), "other.yaml", [2]string{"v1.0.0", ""})
	tests := []struct {
		name string
		tags tags
		want string
	}{
		{"no clone", tags{Repository: "owner/none"}, "net: owner/none: git tag"},
		{"no file", tags{Repository: "owner/net", Manifest: "net.yaml"}, "net: owner/net: git cat-file blob v1.0.0:net.yaml"},
		{"no range", tags{Repository: "owner/net", Take: "newest"}, `range "newest"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readClones(t.Context(), dir, map[string]*source{"net": {Tags: &tt.tags}}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSplitReference(t *testing.T) {
	for ref, want := range map[string][2]string{
		"longhornio/longhorn-ui:v1": {"docker.io/longhornio/longhorn-ui:v1", ""},
		"redis:8":                   {"docker.io/library/redis:8", ""},
		"h.io/a:1@sha256:" + strings.Repeat("a", 64): {"h.io/a:1", "sha256:" + strings.Repeat("a", 64)},
	} {
		name, digest, err := splitReference(ref)
		if err != nil || name != want[0] || digest != want[1] {
			t.Errorf("%s: %s, %s, %v", ref, name, digest, err)
		}
	}
	for _, ref := range []string{"redis", "UPPER:1", ""} {
		if _, _, err := splitReference(ref); err == nil {
			t.Errorf("%q passes", ref)
		}
	}
}
