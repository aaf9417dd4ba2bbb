package sbom

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

const (
	cycloneVersion = "1.6"
	cycloneSchema  = "http://cyclonedx.org/schema/bom-1.6.schema.json"
)

// The fields of CycloneDX 1.6 that follow from a lock or a program.
type (
	cycloneDocument struct {
		Schema       string             `json:"$schema"`
		Format       string             `json:"bomFormat"`
		SpecVersion  string             `json:"specVersion"`
		Serial       string             `json:"serialNumber"`
		Version      int                `json:"version"`
		Metadata     cycloneMetadata    `json:"metadata"`
		Components   []cycloneComponent `json:"components"`
		Dependencies []cycloneDepends   `json:"dependencies"`
	}
	cycloneMetadata struct {
		Timestamp string           `json:"timestamp,omitempty"`
		Tools     cycloneTools     `json:"tools"`
		Component cycloneComponent `json:"component"`
	}
	cycloneTools struct {
		Components []cycloneComponent `json:"components"`
	}
	cycloneComponent struct {
		Type       string             `json:"type"`
		Ref        string             `json:"bom-ref,omitempty"`
		Name       string             `json:"name"`
		Version    string             `json:"version,omitempty"`
		Hashes     []cycloneHash      `json:"hashes,omitempty"`
		PURL       string             `json:"purl,omitempty"`
		References []cycloneReference `json:"externalReferences,omitempty"`
		Properties []cycloneProperty  `json:"properties,omitempty"`
		Components []cycloneComponent `json:"components,omitempty"`
	}
	cycloneHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	cycloneReference struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	cycloneProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	cycloneDepends struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

func (s *materials) cyclonedx() *cycloneDocument {
	d := &cycloneDocument{
		Schema: cycloneSchema, Format: "CycloneDX", SpecVersion: cycloneVersion, Version: 1,
		Serial: cycloneSerial(s.sum),
		Metadata: cycloneMetadata{
			Timestamp: s.lock.Created.UTC().Format(time.RFC3339),
			Tools:     cycloneTools{[]cycloneComponent{{Type: "application", Name: "kubexm"}}},
			Component: cycloneComponent{Type: "platform", Ref: "bundle", Name: s.lock.Cluster, Version: fmt.Sprint(s.lock.Serial)},
		},
		Components:   []cycloneComponent{},
		Dependencies: []cycloneDepends{{Ref: "bundle"}},
	}
	for _, p := range s.parts {
		d.Components = append(d.Components, component(p))
		d.Dependencies[0].DependsOn = append(d.Dependencies[0].DependsOn, p.id)
	}
	return d
}

// cycloneSerial derives the document's serial number from a digest of its subject (a UUID
// of RFC 9562, version 8, which is for custom data).
func cycloneSerial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

func component(p part) cycloneComponent {
	c := cycloneComponent{Ref: p.id, Name: p.name, Version: p.version, PURL: p.purl}
	switch {
	case p.packaged:
		c.Type = "library" // the type that other tools use for operating system packages
	case p.kind == manifest.Binary:
		c.Type = "application"
	case p.kind == manifest.Image:
		c.Type = "container"
	case p.kind == manifest.Packages:
		c.Type = "data"
	default:
		c.Type = "file"
	}
	if p.sha256 != "" {
		c.Hashes = []cycloneHash{{"SHA-256", p.sha256}}
	}
	if p.address != "" {
		c.References = []cycloneReference{{"distribution", p.address}}
	}
	if p.file != "" {
		c.Properties = append(c.Properties, cycloneProperty{"kubexm:file", p.file})
	}
	if p.platform != "" {
		c.Properties = append(c.Properties, cycloneProperty{"kubexm:platform", p.platform})
	}
	for _, x := range p.parts {
		c.Components = append(c.Components, component(x))
	}
	return c
}
