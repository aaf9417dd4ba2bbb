package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// What the lab's bundles carry of packages.
const (
	debian   = "deb.example/debian"
	codename = "bookworm"
)

// withPackages writes a config into dir that asks for what another one does, and
// for packages of an operating system.
func withPackages(config, dir string) (string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s: %w", config, err)
	}
	spec, ok := document["spec"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("%s: has no spec", config)
	}
	bundle, ok := spec["bundle"].(map[string]any)
	if !ok {
		bundle = map[string]any{}
		spec["bundle"] = bundle
	}
	bundle["operatingSystems"] = []any{map[string]any{
		"name": "debian", "releases": []string{"12"}, "repositories": []string{"deb https://" + debian + " " + codename + " main"}, "keys": []string{"key.asc"},
	}}
	if text, err = yaml.Marshal(document); err != nil {
		return "", err
	}
	out := filepath.Join(dir, "config.yaml")
	return out, os.WriteFile(out, text, 0o600)
}

// publish has the lab's content serve the packages that a lock wants, signed by
// key.asc beside the config. One of them is large enough to be broken off.
func (l *lab) publish(lock *manifest.Lock) error {
	signer, err := upstream.NewSigner(time.Now().AddDate(-1, 0, 0))
	if err != nil {
		return err
	}
	key, err := signer.Public()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.config), "key.asc"), key, 0o600); err != nil {
		return err
	}
	var all []upstream.Deb
	for _, a := range lock.Artifacts {
		if a.Packages == nil || len(all) > 0 {
			continue
		}
		for _, name := range a.Packages.Want {
			name, _, _ = strings.Cut(name, " ")
			all = append(all, upstream.Deb{Name: name, Version: "1"})
		}
	}
	if len(all) == 0 {
		return nil
	}
	var large strings.Builder
	for i := range 8 << 10 {
		fmt.Fprintf(&large, "%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	all[0].Files = map[string]string{"usr/share/large": large.String()}
	dir := filepath.Join(l.dir, "debian")
	if err := signer.WriteApt(dir, upstream.Suite{Codename: codename, Version: "12", Date: time.Now().Add(-time.Hour)}, all...); err != nil {
		return err
	}
	return l.up.Folder(debian, dir)
}
