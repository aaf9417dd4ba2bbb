package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mensylisir/kubexm/bundle"
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

func (a *app) printRows(rows []row) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tNAME\tVERSION\tPLATFORM\tSIZE\tDIGEST")
	for _, r := range rows {
		size, digest := "?", "?"
		if r.Size > 0 {
			size = bundle.Bytes(r.Size)
		}
		if r.Digest != "" {
			digest = strings.TrimPrefix(r.Digest, "sha256:")[:12]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Kind, r.Name, r.Version, cmp.Or(r.Platform, "any"), size, digest)
	}
	return w.Flush()
}
