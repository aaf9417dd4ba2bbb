package bundle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Change is one difference between a lock and what the config now resolves to.
type Change struct {
	ID   string `json:"id"`
	What string `json:"what"` // "added", "removed", or what differs
}

// String returns "id: what".
func (c Change) String() string { return c.ID + ": " + c.What }

// Adopt returns resolved with every pin of previous that still matches it. It also returns
// the changes, that is, the differences between previous and resolved. Without changes the
// result is previous itself. Nothing is fetched. A nil previous is an empty lock.
func Adopt(resolved, previous *manifest.Lock) (*manifest.Lock, []Change) {
	l := *resolved
	l.Artifacts = slices.Clone(resolved.Artifacts)
	l.Images = slices.Clone(resolved.Images)
	if previous == nil {
		previous = &manifest.Lock{}
	}
	changes := adoptHeader(&l, previous)

	artifacts := map[string]manifest.Artifact{}
	for _, a := range previous.Artifacts {
		artifacts[a.ID] = a
	}
	for i, want := range l.Artifacts {
		have, ok := artifacts[want.ID]
		delete(artifacts, want.ID)
		what, keep := artifactChange(want, have, ok)
		if what != "" {
			changes = append(changes, Change{want.ID, what})
		}
		if keep {
			have.Sets = want.Sets
			l.Artifacts[i] = have
		}
	}
	images := map[string]manifest.ImagePin{}
	for _, im := range previous.Images {
		images[im.ID] = im
	}
	for i, want := range l.Images {
		have, ok := images[want.ID]
		delete(images, want.ID)
		what, keep := imageChange(want, have, ok, l.Platforms)
		if what != "" {
			changes = append(changes, Change{want.ID, what})
		}
		if keep {
			have.Names, have.Sets = want.Names, want.Sets
			if have.Trust == manifest.FromUpstream { // discovered before, now listed
				have.Trust = cmp.Or(want.Trust, manifest.FromContent)
			}
			l.Images[i] = have
		}
	}
	for id := range artifacts {
		changes = append(changes, Change{id, "removed"})
	}
	for id := range images {
		changes = append(changes, Change{id, "removed"})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.String(), b.String()) })
	if len(changes) == 0 {
		return previous, nil
	}
	return &l, changes
}

func adoptHeader(l, previous *manifest.Lock) []Change {
	var changes []Change
	differ := func(id, old, now string) {
		if old != now {
			changes = append(changes, Change{id, fmt.Sprintf("%s is now %s", orNone(old), orNone(now))})
		}
	}
	differ("cluster", previous.Cluster, l.Cluster)
	differ("config", previous.Config, l.Config)
	differ("platforms", fmt.Sprint(sorted(previous.Platforms)), fmt.Sprint(sorted(l.Platforms)))
	differ("sets", fmt.Sprint(previous.Sets), fmt.Sprint(l.Sets))
	return changes
}

// artifactChange returns how have differs from want ("" if it does not), and whether its
// pins can be used for want nevertheless.
func artifactChange(want, have manifest.Artifact, ok bool) (what string, keep bool) {
	if ok && want.Kind == manifest.Packages {
		if what = packagesChange(want, have); what != "" {
			return what, false
		}
	}
	switch {
	case !ok:
		return "added", false
	case want.Repository != have.Repository:
		return fmt.Sprintf("repository %s is now %s", orNone(have.Repository), orNone(want.Repository)), false
	case len(want.Parts) > 0 && (len(have.Parts) == 0 || want.Parts[0].SHA256 != have.Parts[0].SHA256):
		return "its folder has changed", false
	case want.Address != have.Address && want.Repository == "":
		return fmt.Sprintf("address %s is now %s", have.Address, want.Address), false
	case want.SHA256 != "" && want.SHA256 != have.SHA256:
		return fmt.Sprintf("sha256 %s is now %s", have.SHA256, want.SHA256), false
	case want.Kind != manifest.Packages && (want.Archive != have.Archive || !slices.EqualFunc(byPath(want.Members), byPath(have.Members), sameMember)):
		return "other archive entries are selected", false
	case want.DigestAddress != have.DigestAddress:
		return "its digest is published at another address", false
	case !slices.Equal(sorted(want.Sets), sorted(have.Sets)):
		return fmt.Sprintf("sets %v are now %v", have.Sets, want.Sets), true
	}
	return "", true
}

func imageChange(want, have manifest.ImagePin, ok bool, platforms []manifest.Platform) (what string, keep bool) {
	var held []manifest.Platform
	for _, p := range have.Platforms {
		held = append(held, p.Platform)
	}
	switch {
	case !ok:
		return "added", false
	case want.Digest != "" && want.Digest != have.Digest:
		return fmt.Sprintf("digest %s is now %s", have.Digest, want.Digest), false
	case !slices.Equal(sorted(held), sorted(platforms)):
		return fmt.Sprintf("platforms %v are now %v", held, platforms), false
	case !slices.Equal(sorted(want.Sets), sorted(have.Sets)) || !slices.Equal(sorted(want.Names), sorted(have.Names)):
		return "its sets or names differ", true
	}
	return "", true
}

func byPath(ms []manifest.Member) []manifest.Member {
	ms = slices.Clone(ms)
	slices.SortFunc(ms, func(a, b manifest.Member) int { return cmp.Compare(a.Path, b.Path) })
	return ms
}

func sameMember(a, b manifest.Member) bool { return a.Path == b.Path && a.Name == b.Name }
