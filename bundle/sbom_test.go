package bundle

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// billsLock has each shape of a component: a plain file, an archive of files, a
// chart, packages of both formats, an image of two platforms, one of a single
// manifest, one by digest.
func billsLock(t *testing.T) *manifest.Lock {
	l := newWorld(t).lock
	l.Artifacts[0].Version, l.Artifacts[1].Version = "v1.32.2", "v1.2.3"
	l.Artifacts = append(l.Artifacts, manifest.Artifact{
		ID: "chart/cert-manager/v1.16.1", Kind: manifest.Chart, Name: "cert-manager", Version: "v1.16.1+build.7", Sets: l.Artifacts[0].Sets,
		Address: "https://charts.example/a b/cert-manager.tgz", SHA256: hexA, Size: 12, Trust: manifest.FromContent,
	})
	metadata := func(path string) manifest.Member {
		return manifest.Member{Path: path, Name: path, Size: 3, SHA256: hexC}
	}
	packaged := func(path, name string) manifest.Member {
		return manifest.Member{Path: path, Name: path, Size: 3, SHA256: hexB, Package: name, Address: "https://deb.example/" + path, Record: "x"}
	}
	l.Artifacts = append(l.Artifacts, manifest.Artifact{
		ID: "packages/debian-12/12/linux/amd64", Kind: manifest.Packages, Name: "debian-12", Version: "12", Sets: l.Artifacts[0].Sets,
		Platform: manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}, Packages: &manifest.PackageSet{Format: manifest.Deb, Want: []string{"socat"}},
		Members: []manifest.Member{metadata("Packages"), metadata("Release"), packaged("pool/libstdc++6_12.2.0-14+deb12u1_amd64.deb", "libstdc++6 12.2.0-14+deb12u1 (amd64)"),
			packaged("pool/socat_1.7.4.4-2_amd64.deb", "socat 1:1.7.4.4~rc1-2 (amd64)")},
	}, manifest.Artifact{
		ID: "packages/rocky-9/9/linux/amd64", Kind: manifest.Packages, Name: "rocky-9", Version: "9", Sets: l.Artifacts[0].Sets,
		Platform: manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "rocky", Release: "9"}, Packages: &manifest.PackageSet{Format: manifest.RPM, Want: []string{"socat"}},
		Members: []manifest.Member{metadata("repodata/repomd.xml"), packaged("Packages/NetworkManager-1.42.2-1.el9.x86_64.rpm", "NetworkManager 1:1.42.2-1.el9 (x86_64)"),
			packaged("Packages/socat-1.7.4.1-5.el9.noarch.rpm", "socat 1.7.4.1-5.el9 (noarch)")},
	})
	two, one := l.Images[0], l.Images[0]
	two.Reference = "registry.example:5000/team/app:v1"
	two.ID = "image/" + two.Reference
	arm := two.Platforms[0]
	arm.Platform.Arch, arm.Digest = "arm64", "sha256:"+strings.Repeat("b", 64)
	two.Platforms = append(slices.Clone(two.Platforms), arm)
	one.Reference = "quay.example/x/only@sha256:" + strings.Repeat("c", 64)
	one.ID, one.Digest = "image/"+one.Reference, "sha256:"+strings.Repeat("c", 64)
	one.Platforms = slices.Clone(one.Platforms)
	one.Platforms[0].Digest = one.Digest
	l.Images = append(l.Images, two, one)
	return l
}

func TestBillsAreGolden(t *testing.T) {
	for _, format := range []string{SPDX, CycloneDX} {
		text, err := SBOM(billsLock(t), format)
		if err != nil {
			t.Fatal(err)
		}
		again, err := SBOM(billsLock(t), format)
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("%s: the same lock gives other bytes (%v)", format, err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "sbom."+format+".json")
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
	if _, err := SBOM(billsLock(t), "csv"); err == nil {
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
	l := billsLock(t)
	s := &materials{lock: l}
	for _, a := range l.Artifacts {
		s.parts = append(s.parts, artifactPart(a))
	}
	for _, im := range l.Images {
		s.parts = append(s.parts, imagePart(im))
	}
	return s
}

// TestBundleCarriesItsBills: a bundle holds both under its root; one without
// them has them made of its lock, the same bytes.
func TestBundleCarriesItsBills(t *testing.T) {
	w := newWorld(t)
	b, err := Open(t.Context(), w.build(t, 2), anyone)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for format, media := range map[string]string{SPDX: mediaSPDX, CycloneDX: mediaCycloneDX} {
		if !slices.ContainsFunc(b.others, func(d v1.Descriptor) bool { return d.ArtifactType == media }) {
			t.Errorf("no child of the root is a %s", media)
		}
		held, err := b.SBOM(format)
		if err != nil {
			t.Fatal(err)
		}
		made, err := SBOM(w.lock, format)
		if err != nil || !bytes.Equal(held, made) {
			t.Errorf("%s: held and made differ (%v)", format, err)
		}
		without := &Bundle{Lock: b.Lock, archive: b.archive}
		if text, err := without.SBOM(format); err != nil || !bytes.Equal(text, made) {
			t.Errorf("%s: without one in it: %v", format, err)
		}
	}
}
