package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// overlayHeader is the first line of an overlay by OverlayFor.
const overlayHeader = "# Pins the versions of a lock to the digests in the lock; for use with --versions.\n"

// OverlayFor returns an overlay with exactly the versions of lock: the sha256 of every artifact
// that has one, by version and architecture, and the digest of every image that has one.
// Versions that are not in the embedded matrix are written completely. The overlay leaves out
// files that the config specifies, because the config pins them, and packages, of which the
// matrix has only names.
func OverlayFor(lock *manifest.Lock) ([]byte, error) {
	matrix, problems := Load()
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("read the matrix: %w", err)
	}
	return overlayFor(matrix, lock)
}

func overlayFor(matrix *Catalog, lock *manifest.Lock) ([]byte, error) {
	o := &overlayWriter{matrix: matrix, doc: &Document{Components: map[string]*Component{}, Images: map[string]string{}}}
	groups := map[[2]string][]manifest.Artifact{}
	for _, a := range lock.Artifacts {
		if a.Version != fromConfig && a.Kind != manifest.Packages {
			key := [2]string{a.Name, a.Version}
			groups[key] = append(groups[key], a)
		}
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		if err := o.release(groups[key]); err != nil {
			return nil, err
		}
	}
	for _, s := range lock.Sets {
		o.set(s, lock.Images)
	}
	for _, image := range lock.Images {
		if image.Digest != "" {
			o.doc.Images[image.Reference] = image.Digest
		}
	}
	return o.doc.Encode(overlayHeader)
}

type overlayWriter struct {
	matrix *Catalog
	doc    *Document
}

// set writes the versions of a set that are not in the embedded matrix.
func (o *overlayWriter) set(s manifest.Set, images []manifest.ImagePin) {
	for name, version := range s.Components {
		if _, _, known := o.matrix.Release(name, version); known {
			continue
		}
		c := o.component(name)
		r := c.Versions[version]
		base, known := o.matrix.Component(name)
		if !known && c.Kind == "" {
			c.Kind = manifest.Image
		}
		if name == Kubernetes {
			r.With = s.Components
		}
		if !known || base.Images == nil {
			r.Images = imagesOf(name, s.Name, images)
		}
		c.Versions[version] = r
	}
}

// imagesOf returns the images of a component: their logical name is the component's name, or
// begins with it and a slash.
func imagesOf(component, set string, images []manifest.ImagePin) []Image {
	var out []Image
	for _, image := range images {
		for _, name := range image.Names {
			if (name == component || strings.HasPrefix(name, component+"/")) && slices.Contains(image.Sets, set) {
				out = append(out, Image{Name: name, Reference: image.Reference})
			}
		}
	}
	return out
}

func (o *overlayWriter) component(name string) *Component {
	if o.doc.Components[name] == nil {
		o.doc.Components[name] = &Component{Versions: map[string]Release{}}
	}
	return o.doc.Components[name]
}

// release writes one version; as has one artifact per platform.
func (o *overlayWriter) release(as []manifest.Artifact) error {
	first := as[0]
	complete, known := o.complete(first)
	var r Release
	moved := false
	for _, a := range as {
		arch := a.Platform.Arch
		moved = moved || expand(complete.Address, a.Version, arch) != a.Address
		if arch == "" {
			arch = anyArch
		} else {
			r.Architectures = append(r.Architectures, arch)
		}
		if a.SHA256 != "" {
			if r.SHA256 == nil {
				r.SHA256 = map[string]string{}
			}
			r.SHA256[arch] = a.SHA256
		}
	}
	slices.Sort(r.Architectures)
	if slices.Equal(r.Architectures, complete.Architectures) || len(r.SHA256) > 0 {
		r.Architectures = nil // they are the default
	}
	var err error
	if moved {
		if r.Address, err = common(as, func(a manifest.Artifact) string { return a.Address }); err != nil {
			return err
		}
		if r.DigestAddress, err = common(as, func(a manifest.Artifact) string { return a.DigestAddress }); err != nil {
			return err
		}
	}
	c := o.component(first.Name)
	if !known {
		c.Kind, r.Archive = first.Kind, first.Archive
		if r.Members, err = commonMembers(as); err != nil {
			return err
		}
	}
	c.Versions[first.Version] = r
	return nil
}

// complete returns the release of an artifact in the embedded matrix, or the defaults of its
// component for a new version.
func (o *overlayWriter) complete(a manifest.Artifact) (Release, bool) {
	c, known := o.matrix.Component(a.Name)
	if !known {
		return Release{}, false
	}
	if _, r, ok := o.matrix.Release(a.Name, a.Version); ok {
		return r, true
	}
	return Release{Recipe: c.Recipe}, true
}

func commonMembers(as []manifest.Artifact) ([]Member, error) {
	var out []Member
	for i, m := range as[0].Members {
		path, err := common(as, func(a manifest.Artifact) string { return a.Members[i].Path })
		if err != nil {
			return nil, err
		}
		out = append(out, Member{Path: path, Name: m.Name})
	}
	return out, nil
}

// common returns the template of which every artifact's text is an expansion.
func common(as []manifest.Artifact, text func(manifest.Artifact) string) (string, error) {
	plain, templates := map[string]bool{}, map[string]bool{}
	for _, a := range as {
		s := text(a)
		plain[s] = true
		if arch := a.Platform.Arch; arch != "" {
			s = strings.ReplaceAll(strings.ReplaceAll(s, machines[arch], "{machine}"), arch, "{arch}")
		}
		templates[s] = true
	}
	for _, one := range []map[string]bool{templates, plain} {
		if len(one) == 1 {
			return slices.Collect(maps.Keys(one))[0], nil
		}
	}
	return "", fmt.Errorf("%s %s: its addresses and paths differ by more than the architecture: %s",
		as[0].Name, as[0].Version, strings.Join(slices.Sorted(maps.Keys(plain)), ", "))
}
