package sbom

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/manifest"
)

// The formats of a bill of materials, by name and by media type.
const (
	SPDX      = "spdx"
	CycloneDX = "cyclonedx"

	MediaSPDX      = "application/spdx+json"
	MediaCycloneDX = "application/vnd.cyclonedx+json"
)

// Generate generates the bill of materials of a lock in a format. The same lock gives the same
// bytes.
func Generate(l *manifest.Lock, format string) ([]byte, error) {
	text, err := manifest.EncodeLock(l)
	if err != nil {
		return nil, err
	}
	s := &materials{lock: l, sum: sha256.Sum256(text)}
	for _, a := range l.Artifacts {
		s.parts = append(s.parts, artifactPart(a))
	}
	for _, im := range l.Images {
		s.parts = append(s.parts, imagePart(im))
	}
	switch format {
	case SPDX:
		return encode(s.spdx())
	case CycloneDX:
		return encode(s.cyclonedx())
	}
	return nil, fmt.Errorf("no bill of materials has the format %q", format)
}

// materials is the content of a lock, independent of a format.
type materials struct {
	lock  *manifest.Lock
	sum   [sha256.Size]byte // digest of the lock
	parts []part
}

// part is one component, including its parts.
type part struct {
	id       string
	kind     manifest.Kind
	name     string
	version  string
	sha256   string // hex; "" if unknown
	address  string // address upstream; "" for a part of a part
	purl     string
	platform string
	file     string // the file's name, if it is a file
	packaged bool   // it is an operating system package
	parts    []part
}

func artifactPart(a manifest.Artifact) part {
	if a.Kind == manifest.Packages {
		return packagesPart(a)
	}
	p := part{
		id: a.ID, kind: a.Kind, name: a.Name, version: a.Version, sha256: a.SHA256, address: a.Address,
		platform: a.Platform.String(), file: path.Base(a.Address),
	}
	qualifiers := url.Values{"download_url": {a.Address}}
	if a.SHA256 != "" {
		qualifiers.Set("checksum", "sha256:"+a.SHA256)
	}
	if a.Platform.Arch != "" {
		qualifiers.Set("arch", a.Platform.Arch)
		qualifiers.Set("os", a.Platform.OS)
	}
	kind := "generic"
	if a.Kind == manifest.Chart {
		kind = "helm"
	}
	p.purl = purl(kind, a.Name, a.Version, qualifiers)
	for _, m := range a.Members {
		p.parts = append(p.parts, part{
			id: a.ID + "/" + m.Path, kind: manifest.File, name: a.Name + "/" + m.Name, version: a.Version,
			sha256: m.SHA256, platform: p.platform, file: m.Path,
		})
	}
	return p
}

func imagePart(im manifest.ImagePin) part {
	name, tag := im.Reference, ""
	if named, err := reference.ParseNormalizedNamed(im.Reference); err == nil {
		name = named.Name()
		if t, ok := named.(reference.Tagged); ok {
			tag = t.Tag()
		}
	}
	of := func(digest, platform string) part {
		qualifiers := url.Values{"repository_url": {name}}
		if tag != "" {
			qualifiers.Set("tag", tag)
		}
		if _, arch, ok := strings.Cut(platform, "/"); ok {
			qualifiers.Set("arch", arch)
		}
		return part{
			id: im.ID, kind: manifest.Image, name: name, version: tag, sha256: strings.TrimPrefix(digest, "sha256:"),
			address: "oci://" + name + "@" + digest, platform: platform,
			purl: purl("oci", path.Base(name), digest, qualifiers),
		}
	}
	whole := of(im.Digest, "")
	for _, x := range im.Platforms {
		if x.Digest == im.Digest {
			return of(im.Digest, x.Platform.String())
		}
		p := of(x.Digest, x.Platform.String())
		p.id += "/" + x.Platform.String()
		whole.parts = append(whole.parts, p)
	}
	return whole
}

// purl returns a package URL with sorted qualifiers. Its parts are escaped as the purl
// specification requires, which allows a colon and a slash in values.
func purl(kind, name, version string, qualifiers url.Values) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	value := strings.NewReplacer("%2F", "/", "%3A", ":", "+", "%20")
	s := "pkg:" + kind + "/" + escape(strings.ToLower(name))
	if kind != "oci" {
		s = "pkg:" + kind + "/" + escape(name)
	}
	if version != "" {
		s += "@" + escape(version)
	}
	return s + "?" + value.Replace(qualifiers.Encode())
}

// encode is the canonical JSON form of a bill.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(b, '\n'), nil
}
