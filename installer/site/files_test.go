package site

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestFilesOfAnEtcdOutside: they are found from the config's folder, and looked at
// before a cluster is made, not when one is taken away.
func TestFilesOfAnEtcdOutside(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	here := func(from string, e manifest.ExternalEtcd) manifest.ExternalEtcd {
		c := &manifest.Cluster{}
		c.Spec.Etcd.External = e
		dir := "."
		if filepath.IsAbs(from) {
			dir = filepath.Dir(from)
		}
		c.ResolvePaths(dir)
		return c.Spec.Etcd.External
	}
	written := manifest.ExternalEtcd{CAFile: "etcd/ca.crt", CertFile: "/keys/c.crt"}
	for from, want := range map[string]manifest.ExternalEtcd{
		config: {CAFile: filepath.Join(dir, "etcd", "ca.crt"), CertFile: "/keys/c.crt"},
		"":     {CAFile: "etcd/ca.crt", CertFile: "/keys/c.crt"}, // the bundle's own: where kubexm runs
		"-":    {CAFile: "etcd/ca.crt", CertFile: "/keys/c.crt"},
	} {
		if got := here(from, written); got.CAFile != want.CAFile || got.CertFile != want.CertFile || got.KeyFile != "" {
			t.Errorf("from %q: %+v", from, got)
		}
	}

	c := steptest.Cluster(t, steptest.Small)
	c.Spec.Etcd.Type, c.Spec.Etcd.External = "external", here(config, manifest.ExternalEtcd{Endpoints: []string{"https://192.0.2.41:2379"}, CAFile: "ca.crt"})
	checkFiles := func(p plan.Pipeline) error {
		s := Site{Request: Request{Options: installer.Options{Cluster: c}, Config: config, Pipeline: p}}
		return s.checkFiles()
	}
	for _, p := range pipeline.All() {
		err := checkFiles(p)
		ps, found := errors.AsType[manifest.Problems](err)
		if found != p.WritesRecord {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if found && (len(ps) != 1 || ps[0].Path != "spec.etcd.external.caFile" || ps[0].File != config) {
			t.Errorf("%+v", ps)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkFiles(pipeline.Create()); err == nil {
		t.Error("a file that holds no certificate was taken")
	}
}
