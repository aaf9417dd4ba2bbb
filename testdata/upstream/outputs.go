package upstream

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// SourcesFor writes a Sources document that sends every one of hosts to the
// server at base, an address like http://127.0.0.1:8080. A CA's file goes with
// an https address.
func SourcesFor(hosts []string, base, caFile string) ([]byte, error) {
	spec := manifest.Sources{CAFile: caFile}
	for _, h := range hosts {
		spec.Replace = append(spec.Replace, manifest.Replacement{From: h, To: base + "/" + h, PlainHTTP: strings.HasPrefix(base, "http://")})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Where the loopback upstream stands in for the internet. Use it with --sources.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(struct {
		APIVersion string           `yaml:"apiVersion"`
		Kind       string           `yaml:"kind"`
		Spec       manifest.Sources `yaml:"spec"`
	}{manifest.APIVersion, manifest.SourcesKind, spec}); err != nil {
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
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Paths says where WriteFiles put what it wrote.
type Paths struct {
	Sources  string // for --sources
	Versions string // for --versions
	CA       string // "" where none was given
}

// WriteFiles writes sources.yaml and versions.yaml into dir, and ca.pem where a
// CA is given. With them kubexm takes the server at base for the internet, and
// expects of every file and image the stand-in's digest.
func (s *Server) WriteFiles(dir, base string, ca []byte) (Paths, error) {
	p := Paths{Sources: filepath.Join(dir, "sources.yaml"), Versions: filepath.Join(dir, "versions.yaml")}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return p, err
	}
	if ca != nil {
		var err error
		if p.CA, err = filepath.Abs(filepath.Join(dir, "ca.pem")); err != nil {
			return p, err
		}
		if err := writeFile(p.CA, ca); err != nil {
			return p, err
		}
	}
	src, err := SourcesFor(s.Hosts(), base, p.CA)
	if err != nil {
		return p, err
	}
	over, err := versions.OverlayFor(s.Lock())
	if err != nil {
		return p, err
	}
	if err := writeFile(p.Sources, src); err != nil {
		return p, err
	}
	return p, writeFile(p.Versions, over)
}
