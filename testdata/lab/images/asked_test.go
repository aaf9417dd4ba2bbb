package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// TestAskedFor: a component is built for an image of its own version, and for no other one.
func TestAskedFor(t *testing.T) {
	rows, err := components.Asked()
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]int{"ghcr.io/kube-vip/kube-vip:v1.2.3": 1, "ghcr.io/kube-vip/kube-vip:v1.0.0": 0, "docker.io/calico/node:v3.28.5": 1, "registry.k8s.io/dns/k8s-dns-node-cache:1.25.0": 1, "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.3.0": 1, "registry.k8s.io/pause:3.10": 0} {
		got, err := AskedFor(rows, []string{"docker.io/library/other:1", reference})
		if err != nil || len(got) != want {
			t.Errorf("%s: %+v, %v", reference, got, err)
		}
	}
	if _, err := AskedFor(nil, nil); err == nil {
		t.Error("a recipe without a component is no error")
	}
}

// TestScripts: an image has its recipe's scripts, which anyone may run.
func TestScripts(t *testing.T) {
	cache := t.TempDir()
	c := components.Component{Name: "toy", Version: "v1", Programs: map[string]string{"toy": "a package"}}
	if err := os.MkdirAll(c.Dir(cache), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir(cache), "toy"), []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := recipe{repository: "lab.test/toy", component: "toy", files: map[string]string{"toy": "/toy"}, scripts: map[string]string{"/usr/sbin/start": "#!/bin/sh\n"}}
	index, err := r.make(c, cache, t.TempDir(), map[string]string{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := layout.Write(t.TempDir(), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.AppendIndex(index); err != nil { // it reads the scripts
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	in := mutate.Extract(image)
	defer in.Close()
	for files := tar.NewReader(in); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && h.Mode == 0o755 {
			got["/"+h.Name] = string(text)
		}
	}
	if len(got) != 2 || got["/toy"] != "a program" || got["/usr/sbin/start"] != "#!/bin/sh\n" {
		t.Errorf("the image has %q", got)
	}
}
