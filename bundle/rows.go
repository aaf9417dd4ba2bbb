package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Row is one entry of a listed lock.
type Row struct {
	Kind     manifest.Kind  `json:"kind" yaml:"kind"`
	Name     string         `json:"name" yaml:"name"`
	Version  string         `json:"version" yaml:"version"`
	Platform string         `json:"platform" yaml:"platform"`
	Size     int64          `json:"size" yaml:"size"` // bytes; 0 if not known yet
	Digest   string         `json:"digest" yaml:"digest"`
	Trust    manifest.Trust `json:"trust,omitempty" yaml:"trust,omitempty"`
	Sets     []string       `json:"sets" yaml:"sets,flow"`

	// For a package repository:
	Want     []string     `json:"want,omitempty" yaml:"want,omitempty,flow"` // names to install
	Packages []PackageRow `json:"packages,omitempty" yaml:"packages,omitempty"`
}

// PackageRow is one package of a repository.
type PackageRow struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version" yaml:"version"`
	Arch    string `json:"arch" yaml:"arch"`
	Size    int64  `json:"size" yaml:"size"` // bytes
	Digest  string `json:"digest" yaml:"digest"`
	Path    string `json:"path" yaml:"path"` // in the repository
}

// Rows lists the content of a lock: each artifact, and each image once per platform.
func Rows(l *manifest.Lock) []Row {
	var rows []Row
	for _, x := range l.Artifacts {
		r := Row{Kind: x.Kind, Name: x.Name, Version: x.Version, Platform: x.Platform.String(), Trust: x.Trust, Sets: x.Sets}
		for _, b := range x.Blobs() {
			r.Size += b.Size
		}
		if r.Digest = x.SHA256; r.Digest != "" {
			r.Digest = "sha256:" + r.Digest
		}
		if x.Kind == manifest.Packages {
			r.Want = x.Packages.Want
			for _, p := range x.PackageList() {
				r.Packages = append(r.Packages, PackageRow{p.Name, p.Version, p.Arch, p.Size, "sha256:" + p.SHA256, p.Path})
			}
		}
		rows = append(rows, r)
	}
	for _, im := range l.Images {
		name, tag := SplitTag(im.Reference)
		r := Row{Kind: manifest.Image, Name: name, Version: tag, Digest: im.Digest, Trust: im.Trust, Sets: im.Sets}
		for _, p := range im.Platforms {
			r.Platform, r.Size, r.Digest = p.Platform.String(), p.Size+p.Content, p.Digest
			rows = append(rows, r)
		}
		if len(im.Platforms) == 0 {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Platform, b.Platform))
	})
	return rows
}

// SplitTag splits a reference into name and tag. The tag follows a colon after the last
// slash.
func SplitTag(ref string) (name, tag string) {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}
