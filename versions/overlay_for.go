package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// overlayHeader opens what OverlayFor writes.
const overlayHeader = "# Pins what a lock names to the bytes that the lock names; for use with --versions.\n"

// OverlayFor writes an overlay that names exactly the versions of lock: the
// sha256 of every artifact that has one, by version and architecture, and the
// digest of every image that has one. What the embedded matrix does not know
// is written out whole. Files that the config itself brings are left out: the
// config pins them.
func OverlayFor(lock *manifest.Lock) ([]byte, error) {
	matrix, problems := Load()
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("read the matrix: %w", err)
	}
	o := &overlayWriter{matrix: matrix, doc: &Document{Components: map[string]*Component{}, Images: map[string]string{}}}
	groups := map[[2]string][]manifest.Artifact{}
	for _, a := range lock.Artifacts {
		if a.Version != fromConfig {
			key := [2]string{a.Name, a.Version}
			groups[key] = append(groups[key], a)
		}
	}
	for _, as := range groups {
		if err := o.release(as); err != nil {
			return nil, err
		}
	}
	for _, s := range lock.Sets {
		if _, _, known := matrix.Release(Kubernetes, s.Name); !known {
			o.component(Kubernetes).Versions[s.Name] = Release{With: s.Components}
		}
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

func (o *overlayWriter) component(name string) *Component {
	if o.doc.Components[name] == nil {
		o.doc.Components[name] = &Component{Versions: map[string]Release{}}
	}
	return o.doc.Components[name]
}

// release writes one version, given as one artifact for each platform.
func (o *overlayWriter) release(as []manifest.Artifact) error {
	a := as[0]
	_, known := o.matrix.Component(a.Name)
	var whole Release
	if known {
		_, whole, _ = o.matrix.Release(a.Name, a.Version)
		if whole.Address == "" { // a version that the matrix does not know
			whole.Recipe = o.matrix.components[a.Name].Recipe
		}
	}
	var r Release
	for _, a := range as {
		arch := a.Platform.Arch
		key := arch
		if a.Platform.IsZero() {
			key = anyArch
		} else {
			r.Architectures = append(r.Architectures, arch)
		}
		if a.SHA256 != "" {
			if r.SHA256 == nil {
				r.SHA256 = map[string]string{}
			}
			r.SHA256[key] = a.SHA256
		}
		if expand(whole.Address, a.Version, arch) != a.Address {
			address, err := common(as, func(a manifest.Artifact) string { return a.Address })
			if err != nil {
				return err
			}
			r.Address, r.DigestAddress = address, a.DigestAddress
		}
	}
	slices.Sort(r.Architectures)
	if slices.Equal(r.Architectures, whole.Architectures) || len(r.SHA256) > 0 {
		r.Architectures = nil
	}
	c := o.component(a.Name)
	if !known {
		c.Kind, r.Archive = a.Kind, a.Archive
		for i, m := range a.Members {
			path, err := common(as, func(a manifest.Artifact) string { return a.Members[i].Path })
			if err != nil {
				return err
			}
			r.Members = append(r.Members, Member{Path: path, Name: m.Name})
		}
	}
	c.Versions[a.Version] = r
	return nil
}

// common gives the template that a text of every artifact comes from.
func common(as []manifest.Artifact, text func(manifest.Artifact) string) (string, error) {
	templates := map[string]bool{}
	for _, a := range as {
		s := text(a)
		if arch := a.Platform.Arch; arch != "" && len(as) > 1 {
			s = strings.ReplaceAll(strings.ReplaceAll(s, machines[arch], "{machine}"), arch, "{arch}")
		}
		templates[s] = true
	}
	if len(templates) != 1 {
		return "", fmt.Errorf("%s %s: its addresses and paths differ by more than the architecture: %s",
			as[0].Name, as[0].Version, strings.Join(slices.Sorted(maps.Keys(templates)), ", "))
	}
	for s := range templates {
		return s, nil
	}
	return "", nil
}
