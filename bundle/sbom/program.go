package sbom

import (
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"strings"
)

// Program generates a CycloneDX bill of materials of a Go program from its build
// information: every module with its version and the checksum in Go's checksum database,
// and the Go release. The same program gives the same bytes.
func Program(name, version string, b *debug.BuildInfo) ([]byte, error) {
	d := &cycloneDocument{
		Schema: cycloneSchema, Format: "CycloneDX", SpecVersion: cycloneVersion, Version: 1,
		Metadata: cycloneMetadata{
			Tools:     cycloneTools{[]cycloneComponent{{Type: "application", Name: "kubexm"}}},
			Component: cycloneComponent{Type: "application", Ref: "program", Name: name, Version: version, PURL: golang(b.Main.Path, version)},
		},
		Components:   []cycloneComponent{},
		Dependencies: []cycloneDepends{{Ref: "program"}},
	}
	add := func(c cycloneComponent) {
		c.Type, c.Ref = "library", c.PURL
		d.Components = append(d.Components, c)
		d.Dependencies[0].DependsOn = append(d.Dependencies[0].DependsOn, c.Ref)
	}
	release := strings.TrimPrefix(b.GoVersion, "go")
	add(cycloneComponent{Name: "stdlib", Version: release, PURL: golang("stdlib", release)})
	for _, m := range b.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := cycloneComponent{Name: m.Path, Version: m.Version, PURL: golang(m.Path, m.Version)}
		if m.Sum != "" {
			c.Properties = []cycloneProperty{{Name: "go:sum", Value: m.Sum}}
		}
		add(c)
	}
	text, err := encode(d.Components)
	if err != nil {
		return nil, err
	}
	d.Serial = cycloneSerial(sha256.Sum256(fmt.Appendf(nil, "%s %s\n%s", name, version, text)))
	return encode(d)
}

// golang returns the package URL of a Go module.
func golang(module, version string) string {
	purl := "pkg:golang/" + module
	if version != "" {
		purl += "@" + version
	}
	return purl
}
