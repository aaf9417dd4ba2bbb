package sbom

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// sampleLock has each shape of a component: a plain file, an archive of files, a
// chart, packages of both formats, an image of two platforms, one of a single
// manifest, one by digest.
func sampleLock(t *testing.T) *manifest.Lock {
	t.Helper()
	text, err := os.ReadFile("testdata/kubexm.lock")
	if err != nil {
		t.Fatal(err)
	}
	l := &manifest.Lock{}
	if err := yaml.Unmarshal(text, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestBillsAreGolden(t *testing.T) {
	for _, format := range []string{SPDX, CycloneDX} {
		text, err := Generate(sampleLock(t), format)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Generate(sampleLock(t), format)
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("%s: the same lock gives other bytes (%v)", format, err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", format+".json")
		if *update {
			if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), pretty.String()); d != "" {
			t.Errorf("%s (-update rewrites it):\n%s", path, d)
		}
	}
	if _, err := Generate(sampleLock(t), "csv"); err == nil {
		t.Error("a format that nobody knows")
	}
}

// TestSPDXStructure holds what SPDX 2.3 demands of a document.
func TestSPDXStructure(t *testing.T) {
	doc := bills(t).spdx()
	id := regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)
	known := map[string]bool{doc.ID: true}
	for _, p := range doc.Packages {
		if !id.MatchString(p.ID) || known[p.ID] {
			t.Errorf("identifier %q is malformed or not unique", p.ID)
		}
		known[p.ID] = true
		if p.Name == "" || p.DownloadLocation == "" {
			t.Errorf("%s lacks a name or a download location", p.ID)
		}
		for _, c := range p.Checksums {
			if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.Value) {
				t.Errorf("%s has checksum %q", p.ID, c.Value)
			}
		}
	}
	described := 0
	for _, r := range doc.Relationships {
		if !known[r.From] || !known[r.To] {
			t.Errorf("a relationship names what is not there: %+v", r)
		}
		if r.Type == "DESCRIBES" {
			described++
		}
	}
	if described != 1 || len(doc.Relationships) != len(doc.Packages) {
		t.Errorf("%d things are described, %d relationships for %d packages", described, len(doc.Relationships), len(doc.Packages))
	}
	if !regexp.MustCompile(`^https://[^#]+$`).MatchString(doc.Namespace) {
		t.Errorf("namespace %q", doc.Namespace)
	}
}

// TestCycloneDXStructure holds what CycloneDX 1.6 demands of one.
func TestCycloneDXStructure(t *testing.T) {
	doc := bills(t).cyclonedx()
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(doc.Serial) {
		t.Errorf("serial number %q", doc.Serial)
	}
	refs := map[string]bool{doc.Metadata.Component.Ref: true}
	var walk func(cs []cycloneComponent)
	walk = func(cs []cycloneComponent) {
		for _, c := range cs {
			if refs[c.Ref] || c.Ref == "" || c.Name == "" {
				t.Errorf("component %q has no name or no reference of its own", c.Ref)
			}
			refs[c.Ref] = true
			if c.PURL != "" && !regexp.MustCompile(`^pkg:(generic|helm|oci|deb/debian|rpm/rocky)/[A-Za-z0-9._%-]+@[A-Za-z0-9._~%-]+\?[A-Za-z0-9._%=&:/-]+$`).MatchString(c.PURL) {
				t.Errorf("package URL %q", c.PURL)
			}
			walk(c.Components)
		}
	}
	walk(doc.Components)
	for _, d := range doc.Dependencies {
		for _, r := range append(d.DependsOn, d.Ref) {
			if !refs[r] {
				t.Errorf("dependency on %q, which is not there", r)
			}
		}
	}
}

func bills(t *testing.T) *materials {
	t.Helper()
	l := sampleLock(t)
	s := &materials{lock: l}
	for _, a := range l.Artifacts {
		s.parts = append(s.parts, artifactPart(a))
	}
	for _, im := range l.Images {
		s.parts = append(s.parts, imagePart(im))
	}
	return s
}
