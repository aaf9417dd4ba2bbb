package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Blob is one file that a bundle holds of an artifact: the download itself, or
// one member of it.
type Blob struct {
	Name    string // what the file is called when unpacked: "kubelet", "ctr"
	Version string // of the artifact it belongs to
	SHA256  string // lower-case hex
	Size    int64  // bytes
}

// Single tells whether a is one file, and not a set of members.
func (a Artifact) Single() bool { return a.Archive == "" && a.Kind != Packages }

// Blobs gives the files that a goes into a bundle as.
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

// File finds the blob that n means on platform p. A file for any platform
// answers every p.
func (l *Lock) File(n Need, p Platform) (Blob, error) {
	set, err := l.set(n)
	if err != nil {
		return Blob{}, err
	}
	component, member, inArchive := strings.Cut(n.Name, "/")
	for _, a := range l.Artifacts {
		if !a.answers(n.Kind, set, p) {
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

// answers tells whether a is of a kind, in a set, and for a platform. Which
// distribution it is for is part of its name.
func (a Artifact) answers(kind Kind, set string, p Platform) bool {
	return a.Kind == kind && slices.Contains(a.Sets, set) && (a.Platform.IsZero() || a.Platform.Machine() == p.Machine())
}

// Repository finds the repository of packages that n means for the architecture of p.
func (l *Lock) Repository(n Need, p Platform) (Artifact, error) {
	set, err := l.set(n)
	if err != nil {
		return Artifact{}, err
	}
	for _, a := range l.Artifacts {
		if a.Name == n.Name && a.answers(Packages, set, p) {
			return a, nil
		}
	}
	return Artifact{}, fmt.Errorf("packages of %s for %s are not in the lock (set %s)", n.Name, p.Machine(), set)
}

// Image finds the image that n means.
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

// set gives the set that n asks for: its own, or the lock's first.
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

// ImagesOf means every image of a component: those whose logical name is the
// component's, or begins with it and a slash. There may be none.
func ImagesOf(component string) Need { return Need{Kind: Image, Name: component + "/*"} }

// ImagesFor gives the images that n means: one, or those of ImagesOf.
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
