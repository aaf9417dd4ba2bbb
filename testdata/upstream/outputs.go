package upstream

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// SourcesFor writes a Sources document that sends every one of hosts to the server
// at base, an address like http://127.0.0.1:8080.
func SourcesFor(hosts []string, base string) ([]byte, error) {
	type spec struct {
		Replace []manifest.Replacement `yaml:"replace"`
	}
	doc := struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Spec       spec   `yaml:"spec"`
	}{APIVersion: manifest.APIVersion, Kind: manifest.SourcesKind}
	for _, h := range hosts {
		doc.Spec.Replace = append(doc.Spec.Replace, manifest.Replacement{From: h, To: base + "/" + h, PlainHTTP: true})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Where the loopback upstream stands in for the internet. Use it with --sources.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// writeFile puts b at name in one step: who reads it at the same time sees the
// old bytes or the new ones.
func writeFile(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644) //nolint:gosec // no secret in it, and people read it
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
