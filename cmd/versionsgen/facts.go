package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// facts are the tables of public release metadata that the matrix is generated from.
type facts struct {
	checksums map[string]map[string]map[string]string // component → version → architecture → sha256
	kubeadm   map[string]map[string]string            // Kubernetes version → image → tag
	addons    map[string]map[string][]string          // add-on → version → images
}

// readFacts reads the three tables in a folder.
func readFacts(dir string) (*facts, error) {
	f := &facts{}
	for name, into := range map[string]any{
		"checksums.yaml": &f.checksums, "kubeadm-images.yaml": &f.kubeadm, "addon-images.yaml": &f.addons,
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if err := strict(text, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, nil
}

// kubernetes returns the versions that are in both tables; the newest of them is the
// newest in the matrix.
func (f *facts) kubernetes() []string {
	var out []string
	for v := range f.checksums["kubelet"] {
		if _, ok := f.kubeadm[v]; ok {
			out = append(out, v)
		}
	}
	return out
}
