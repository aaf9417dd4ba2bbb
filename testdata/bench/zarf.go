package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// zarfPackage writes the package definition of the work set.
func (t theirs) zarfPackage() ([]byte, error) {
	type file struct {
		Source string `yaml:"source"`
		Target string `yaml:"target"`
	}
	var files []file
	for _, f := range t.files {
		files = append(files, file{Source: f, Target: "files/" + path.Base(f)})
	}
	return yaml.Marshal(map[string]any{
		"kind":       "ZarfPackageConfig",
		"metadata":   map[string]string{"name": "bench", "version": "1.0.0", "architecture": "amd64"},
		"components": []map[string]any{{"name": "all", "required": true, "images": t.images, "files": files}},
	})
}

// zarfBuild is package create, without an SBOM and with an empty cache.
func (w *work) zarfBuild(ctx context.Context, zarf string) (s sample, err error) {
	dir, out, remove, err := w.home("zarf")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	text, err := w.theirs.zarfPackage()
	if err != nil {
		return s, err
	}
	from := filepath.Join(dir, "package")
	if err := errors.Join(os.Mkdir(from, 0o750), os.WriteFile(filepath.Join(from, "zarf.yaml"), text, 0o600)); err != nil {
		return s, err
	}
	return w.measure(ctx, process{home: dir, out: out, args: []string{zarf, "package", "create", from, "--output", out, "--confirm", "--skip-sbom", "--plain-http",
		"--architecture", "amd64", "--zarf-cache", filepath.Join(dir, "zarf-cache"), "--tmpdir", dir, "--no-color"}})
}
