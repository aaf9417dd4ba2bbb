package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Blob is one file of an artifact in a bundle: the downloaded file, or one of its members.
type Blob struct {
	Name    string // file name after extraction: "kubelet", "ctr"
	Version string // of the artifact it belongs to
	SHA256  string // lower-case hex
	Size    int64  // bytes
}

// Single reports whether a is one file, not a set of members.
func (a Artifact) Single() bool { return a.Archive == "" && a.Kind != Packages }

// Blobs returns the files of a in a bundle.
func (a Artifact) Blobs() []Blob {
	if a.Single() {
		name := a.Name
		switch {
		case a.Chart != nil:
			name = a.Chart.Name + "-" + a.Chart.Version + ".tgz"
		case a.Kind != Binary:
			name = path.Base(a.Address)
		}
		return []Blob{{Name: path.Base(name), Version: a.Version, SHA256: a.SHA256, Size: a.Size}}
	}
	bs := make([]Blob, len(a.Members))
	for i, m := range a.Members {
		bs[i] = Blob{Name: m.Name, Version: a.Version, SHA256: m.SHA256, Size: m.Size}
	}
	return bs
}

// File returns the blob that n refers to, for platform p. A file for any platform matches
// every p.
func (l *Lock) File(n Need, p Platform) (Blob, error) {
	set, err := l.set(n)
	if err != nil {
		return Blob{}, err
	}
	component, member, inArchive := strings.Cut(n.Name, "/")
	for _, a := range l.Artifacts {
		if !a.matches(n.Kind, set, p) {
			continue
		}
		if a.Name == n.Name && a.Single() {
			return a.Blobs()[0], nil
		}
		if !inArchive || a.Name != component {
			continue
		}
		for _, b := range a.Blobs() {
			if b.Name == member {
				return b, nil
			}
		}
	}
	return Blob{}, fmt.Errorf("%s %s for %s is not in the lock (set %s)", n.Kind, n.Name, p, set)
}

// matches reports whether a has a kind, belongs to a set, and is for a platform. The
// distribution is not compared: it is part of the artifact's name.
func (a Artifact) matches(kind Kind, set string, p Platform) bool {
	return a.Kind == kind && slices.Contains(a.Sets, set) && (a.Platform.IsZero() || a.Platform.Machine() == p.Machine())
}

// Repository returns the repository of packages that n refers to, for the architecture of p.
func (l *Lock) Repository(n Need, p Platform) (Artifact, error) {
	set, err := l.set(n)
	if err != nil {
		return Artifact{}, err
	}
	for _, a := range l.Artifacts {
		if a.Name == n.Name && a.matches(Packages, set, p) {
			return a, nil
		}
	}
	return Artifact{}, fmt.Errorf("packages of %s for %s are not in the lock (set %s)", n.Name, p.Machine(), set)
}

// Image returns the image that n refers to.
func (l *Lock) Image(n Need) (ImagePin, error) {
	set, err := l.set(n)
	if err != nil {
		return ImagePin{}, err
	}
	for _, im := range l.Images {
		if slices.Contains(im.Sets, set) && slices.Contains(im.Names, n.Name) {
			return im, nil
		}
	}
	return ImagePin{}, fmt.Errorf("image %s is not in the lock (set %s)", n.Name, set)
}

// set returns the set of n, or the first set of the lock if n has none.
func (l *Lock) set(n Need) (string, error) {
	if n.Set == "" && len(l.Sets) > 0 {
		return l.Sets[0].Name, nil
	}
	for _, s := range l.Sets {
		if s.Name == n.Set {
			return s.Name, nil
		}
	}
	return "", fmt.Errorf("%s %s: set %q is not in the lock", n.Kind, n.Name, n.Set)
}

// ImagesOf returns a Need for every image of a component: those whose logical name is the
// component's name, or begins with it and a slash. There may be none.
func ImagesOf(component string) Need { return Need{Kind: Image, Name: component + "/*"} }

// ImagesFor returns the images that n refers to: one, or those of ImagesOf.
func (l *Lock) ImagesFor(n Need) ([]ImagePin, error) {
	component, every := strings.CutSuffix(n.Name, "/*")
	if !every {
		im, err := l.Image(n)
		return []ImagePin{im}, err
	}
	set, err := l.set(n)
	if err != nil {
		return nil, err
	}
	var out []ImagePin
	for _, im := range l.Images {
		if slices.Contains(im.Sets, set) && slices.ContainsFunc(im.Names, func(name string) bool {
			return name == component || strings.HasPrefix(name, component+"/")
		}) {
			out = append(out, im)
		}
	}
	return out, nil
}
