package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
)

// packageJobs returns one job for each file of a package repository, so that they are
// downloaded in parallel and counted one by one.
func packageJobs(f Fetcher, a manifest.Artifact) []job {
	var all []job
	for i, b := range a.Blobs() {
		m := a.Members[i]
		j := job{
			name:  a.ID + ": " + m.Path,
			blobs: []archive.Blob{{Digest: "sha256:" + b.SHA256, Size: b.Size, Compress: compressFile(a, b)}},
			fetch: func(ctx context.Context) error { return f.FetchMember(ctx, a, m) }, stream: f.StreamMember(a, m),
		}
		if m.Package != "" { // metadata is generated, not downloaded
			j.name, j.size = m.Package+" of "+a.Name, m.Size
		}
		all = append(all, j)
	}
	return all
}

// bytesOf returns the total size of an artifact's files.
func bytesOf(a manifest.Artifact) int64 {
	var n int64
	for _, b := range a.Blobs() {
		n += b.Size
	}
	return n
}

// packagesChange returns how an existing package repository differs from the required one;
// "" if it satisfies it. Metadata that differs only in the date at which it was read is not
// a difference.
func packagesChange(want, have manifest.Artifact) string {
	w, h := want.Packages, have.Packages
	switch {
	case w == nil || h == nil:
		return "is no longer a package repository"
	case w.Format != h.Format:
		return fmt.Sprintf("format %s is now %s", h.Format, w.Format)
	case !slices.Equal(w.Sources, h.Sources):
		return fmt.Sprintf("repositories %s are now %s", orNone(strings.Join(h.Sources, ", ")), orNone(strings.Join(w.Sources, ", ")))
	case !slices.Equal(w.Keys, h.Keys):
		return fmt.Sprintf("keys %s are now %s", orNone(strings.Join(h.Keys, ", ")), orNone(strings.Join(w.Keys, ", ")))
	}
	if more, less := difference(h.Want, w.Want); len(more)+len(less) > 0 {
		return formatChanges("installs", more, less)
	}
	if len(want.Members) == 0 {
		return ""
	}
	return pinnedChange(want.PackageList(), have.PackageList())
}

// pinnedChange returns how the packages of two pinned repositories differ.
func pinnedChange(want, have []manifest.Package) string {
	type key struct{ name, arch string }
	old, fresh := map[key][]manifest.Package{}, map[key][]manifest.Package{}
	for _, p := range have {
		old[key{p.Name, p.Arch}] = append(old[key{p.Name, p.Arch}], p)
	}
	var came, went, other []string
	for _, p := range want {
		k := key{p.Name, p.Arch}
		fresh[k] = append(fresh[k], p)
		switch i := len(fresh[k]) - 1; {
		case i >= len(old[k]):
			came = append(came, p.Name+" "+p.Version)
		case old[k][i].Version != p.Version:
			other = append(other, fmt.Sprintf("%s %s is now %s", p.Name, old[k][i].Version, p.Version))
		case old[k][i].SHA256 != p.SHA256:
			other = append(other, fmt.Sprintf("%s %s has different content", p.Name, p.Version))
		case old[k][i].Member != p.Member:
			other = append(other, fmt.Sprintf("%s %s has different metadata", p.Name, p.Version))
		}
	}
	for _, p := range have {
		k := key{p.Name, p.Arch}
		for _, left := range old[k][min(len(fresh[k]), len(old[k])):] {
			went = append(went, left.Name+" "+left.Version)
		}
		delete(old, k)
	}
	if len(came)+len(went) > 0 {
		other = append(other, formatChanges("contains", came, went))
	}
	return few(other, "; ")
}

// formatChanges formats two lists as "also contains a, b, and no longer contains c".
func formatChanges(verb string, came, went []string) string {
	var parts []string
	if len(came) > 0 {
		parts = append(parts, "also "+verb+" "+few(came, ", "))
	}
	if len(went) > 0 {
		parts = append(parts, "no longer "+verb+" "+few(went, ", "))
	}
	return strings.Join(parts, ", and ")
}

// few joins the first items of a list and counts the rest.
func few(all []string, between string) string {
	const most = 8
	if n := len(all) - most; n > 0 {
		all = append(slices.Clone(all[:most]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(all, between)
}

// difference returns what is only in b, and what is only in a.
func difference(a, b []string) (more, less []string) {
	for _, x := range b {
		if !slices.Contains(a, x) {
			more = append(more, x)
		}
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			less = append(less, x)
		}
	}
	return more, less
}
