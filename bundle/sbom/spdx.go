package sbom

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// The fields of SPDX 2.3 that follow from a lock. Files of archives are packages too: an
// SPDX file requires a SHA-1, which a lock does not have.
type (
	spdxDocument struct {
		ID            string             `json:"SPDXID"`
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		CreationInfo  spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo,omitempty"`
		FileName         string         `json:"packageFileName,omitempty"`
		Supplier         string         `json:"supplier"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		CopyrightText    string         `json:"copyrightText"`
		Comment          string         `json:"comment,omitempty"`
		ExternalRefs     []spdxRef      `json:"externalRefs,omitempty"`
		Purpose          string         `json:"primaryPackagePurpose"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const noAssertion = "NOASSERTION"

// notInSPDXID matches the characters that an SPDX identifier must not contain.
var notInSPDXID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func (s *materials) spdx() *spdxDocument {
	name := fmt.Sprintf("%s-%d", s.lock.Cluster, s.lock.Serial)
	d := &spdxDocument{
		ID: "SPDXRef-DOCUMENT", Version: "SPDX-2.3", DataLicense: "CC0-1.0", Name: name,
		Namespace:    fmt.Sprintf("https://kubexm.mensylisir.io/spdx/%s-%x", name, s.sum[:8]),
		CreationInfo: spdxCreation{s.lock.Created.UTC().Format(time.RFC3339), []string{"Tool: kubexm"}},
	}
	w := &spdxWriter{document: d, taken: map[string]bool{}}
	root := w.add(part{id: "bundle", name: s.lock.Cluster, version: fmt.Sprint(s.lock.Serial)}, "SPDXRef-DOCUMENT", "DESCRIBES")
	for _, p := range s.parts {
		id := w.add(p, root, "CONTAINS")
		for _, x := range p.parts {
			w.add(x, id, "CONTAINS")
		}
	}
	return d
}

type spdxWriter struct {
	document *spdxDocument
	taken    map[string]bool
}

// add adds p and its relation to another element, and returns p's identifier.
func (w *spdxWriter) add(p part, from, relation string) string {
	id := "SPDXRef-" + strings.Trim(notInSPDXID.ReplaceAllString(p.id, "-"), "-")
	for base, n := id, 2; w.taken[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	w.taken[id] = true
	purpose := "FILE"
	switch {
	case p.packaged:
		purpose = "INSTALL"
	case p.kind == manifest.Binary:
		purpose = "APPLICATION"
	case p.kind == manifest.Image:
		purpose = "CONTAINER"
	case p.kind == manifest.Chart, p.kind == manifest.Packages, p.kind == "":
		purpose = "ARCHIVE"
	}
	x := spdxPackage{
		ID: id, Name: p.name, Version: p.version, FileName: p.file, Supplier: noAssertion,
		DownloadLocation: cmp.Or(p.address, noAssertion),
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion, Purpose: purpose,
	}
	if p.sha256 != "" {
		x.Checksums = []spdxChecksum{{"SHA256", p.sha256}}
	}
	if p.platform != "" {
		x.Comment = "platform " + p.platform
	}
	if p.purl != "" {
		x.ExternalRefs = []spdxRef{{"PACKAGE-MANAGER", "purl", p.purl}}
	}
	w.document.Packages = append(w.document.Packages, x)
	w.document.Relationships = append(w.document.Relationships, spdxRelationship{from, relation, id})
	return id
}
