package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/manifest"
)

// row is one line of `bundle ls`.
type row struct {
	Kind     manifest.Kind  `json:"kind" yaml:"kind"`
	Name     string         `json:"name" yaml:"name"`
	Version  string         `json:"version" yaml:"version"`
	Platform string         `json:"platform" yaml:"platform"`
	Size     int64          `json:"size" yaml:"size"` // bytes; 0 is not known yet
	Digest   string         `json:"digest" yaml:"digest"`
	Trust    manifest.Trust `json:"trust,omitempty" yaml:"trust,omitempty"`
	Sets     []string       `json:"sets" yaml:"sets,flow"`

	// Of a repository of packages:
	Want     []string     `json:"want,omitempty" yaml:"want,omitempty,flow"` // what is to be installed
	Packages []packageRow `json:"packages,omitempty" yaml:"packages,omitempty"`
}

// packageRow is one package of a repository.
type packageRow struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version" yaml:"version"`
	Arch    string `json:"arch" yaml:"arch"`
	Size    int64  `json:"size" yaml:"size"` // bytes
	Digest  string `json:"digest" yaml:"digest"`
	Path    string `json:"path" yaml:"path"` // in the repository
}

// lockRows lists a lock: each artifact, and each image once for each platform.
func lockRows(l *manifest.Lock) []row {
	var rows []row
	for _, x := range l.Artifacts {
		r := row{Kind: x.Kind, Name: x.Name, Version: x.Version, Platform: x.Platform.String(), Trust: x.Trust, Sets: x.Sets}
		for _, b := range x.Blobs() {
			r.Size += b.Size
		}
		if r.Digest = x.SHA256; r.Digest != "" {
			r.Digest = "sha256:" + r.Digest
		}
		if x.Kind == manifest.Packages {
			r.Want = x.Packages.Want
			for _, p := range bundle.PackagesOf(x) {
				r.Packages = append(r.Packages, packageRow{p.Name, p.Version, p.Arch, p.Size, "sha256:" + p.SHA256, p.Path})
			}
		}
		rows = append(rows, r)
	}
	for _, im := range l.Images {
		name, tag := splitTag(im.Reference)
		r := row{Kind: manifest.Image, Name: name, Version: tag, Digest: im.Digest, Trust: im.Trust, Sets: im.Sets}
		for _, p := range im.Platforms {
			r.Platform, r.Size, r.Digest = p.Platform.String(), p.Size+p.Content, p.Digest
			rows = append(rows, r)
		}
		if len(im.Platforms) == 0 {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Platform, b.Platform))
	})
	return rows
}

// splitTag cuts the tag off a reference: a colon after the last slash.
func splitTag(ref string) (name, tag string) {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}

// printRows writes rows as a table; wide lists packages one by one, and whole digests.
func (a *app) printRows(rows []row, wide bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(kind manifest.Kind, name, version, platform string, size int64, last string) {
		bytes := "?"
		if size > 0 {
			bytes = bundle.Bytes(size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, name, version, cmp.Or(platform, "any"), bytes, last)
	}
	shown := func(digest string) string {
		switch digest = strings.TrimPrefix(digest, "sha256:"); {
		case digest == "":
			return "?"
		case wide:
			return digest
		}
		return digest[:12]
	}
	fmt.Fprintln(w, "KIND\tNAME\tVERSION\tPLATFORM\tSIZE\tDIGEST")
	for _, r := range rows {
		last := shown(r.Digest)
		switch {
		case len(r.Packages) > 0:
			last = console.Count(len(r.Packages), "package")
		case len(r.Want) > 0:
			last = "all that " + console.Count(len(r.Want), "package") + " need"
		}
		line(r.Kind, r.Name, r.Version, r.Platform, r.Size, last)
		if !wide {
			continue
		}
		for _, p := range r.Packages {
			line(r.Kind, "  "+p.Name, p.Version, p.Arch, p.Size, shown(p.Digest))
		}
	}
	return w.Flush()
}
