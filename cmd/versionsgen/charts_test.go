package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/versions"
)

// entry is one version of a chart in an index.
func entry(version, digest, kubernetes, address string) string {
	return fmt.Sprintf("  - {version: %q, digest: %q, kubeVersion: %q, urls: [%q]}\n", version, digest, kubernetes, address)
}

func TestReadIndexes(t *testing.T) {
	dir := t.TempDir()
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	text := "entries:\n  net:\n" +
		entry("v1.0.0", one, ">= 1.23.0-0", "net-v1.0.0.tgz") +
		entry("v1.1.0", two, "", "https://charts.example.org/net-v1.1.0.tgz") +
		entry("v1.2.0", two, "", "net-1.2.0.tgz") + // elsewhere
		entry("v1.3.0-rc.1", two, "", "net-v1.3.0-rc.1.tgz") +
		entry("v0.9.0", two, "", "net-v0.9.0.tgz") +
		"  other:\n" + entry("v1.4.0", two, "", "net-v1.4.0.tgz")
	repository(t, filepath.Join(dir, "owner", "charts"), "index.yaml", [2]string{"v1", text})
	from := func(edit func(*charts)) map[string]*source {
		c := &charts{Repository: "owner/charts", Branch: "HEAD", Take: ">=1"}
		edit(c)
		return map[string]*source{"net": {Charts: c, Component: versions.Component{Recipe: versions.Recipe{Chart: "https://charts.example.org/net-v{version}.tgz"}}}, "none": {}}
	}
	got, err := readIndexes(t.Context(), dir, from(func(*charts) {}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]charted{"net": {"1.0.0": {SHA256: one, Kubernetes: ">=1.23"}, "1.1.0": {SHA256: two}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for name, tt := range map[string]struct {
		edit func(*charts)
		want string
	}{
		"no clone":      {func(c *charts) { c.Repository = "owner/none" }, "net: owner/none: git cat-file"},
		"no chart":      {func(c *charts) { c.Name = "third" }, `the index has no chart third in the range ">=1"`},
		"none in range": {func(c *charts) { c.Take = ">=9" }, `the index has no chart net in the range ">=9"`},
		"no range":      {func(c *charts) { c.Take = "newest" }, `range "newest"`},
	} {
		if _, err := readIndexes(t.Context(), dir, from(tt.edit)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := indexed([]byte("entries:\n  net:\n"+entry("1.0.0", "", "", "net-v1.0.0.tgz")), "net", from(func(*charts) {})["net"]); err == nil || !strings.Contains(err.Error(), "no sha256") {
		t.Errorf("without a digest: got %v", err)
	}
}
