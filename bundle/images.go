package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/bundle/discover"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// Reader pins and reads files and charts. *fetch.Client implements it.
type Reader interface {
	PinArtifact(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error)
	ReadArtifact(ctx context.Context, a manifest.Artifact) ([]byte, error)
}

// ReferencedImage is an image that a chart or a manifest references.
type ReferencedImage struct {
	discover.Image
	Sets   []string // sets of the lock whose Kubernetes versions use it
	Owners []string // add-ons, or the pod network
}

// search is one scan of everything that a config applies to its cluster.
type search struct {
	reader  Reader
	cluster *manifest.Cluster
	kinds   map[string][]string // set → API versions and kinds of its custom resource definitions
	found   []ReferencedImage
	wrong   manifest.Problems // values that a chart does not accept
}

// Discover returns the images that add-ons and the pod network use, sorted. It renders
// every chart that l pins for add-ons of c, with the config's values and for each
// Kubernetes version of the lock, and reads the manifests. Values that charts do not accept
// are returned as manifest.Problems, for all charts together.
func Discover(ctx context.Context, r Reader, c *manifest.Cluster, l *manifest.Lock) ([]ReferencedImage, error) {
	s := &search{reader: r, cluster: c, kinds: map[string][]string{}}
	// A chart may render more objects if the kinds of another chart are known: the first
	// pass collects the kinds.
	for range 2 {
		s.found, s.wrong = nil, nil
		before := fmt.Sprint(s.kinds)
		for _, a := range l.Artifacts {
			if err := s.artifact(ctx, a); err != nil {
				return nil, fmt.Errorf("images of %s: %w", a.ID, err)
			}
		}
		if fmt.Sprint(s.kinds) == before {
			break
		}
	}
	if s.wrong.Err() != nil {
		s.wrong.Sort()
		return nil, s.wrong
	}
	return mergeFound(s.found), nil
}

func (s *search) artifact(ctx context.Context, a manifest.Artifact) error {
	owners := ownersOf(s.cluster, a)
	if len(owners) == 0 {
		return nil
	}
	if !pinnedArtifact(a) {
		var err error
		if a, err = s.reader.PinArtifact(ctx, a); err != nil {
			return err
		}
	}
	content, err := s.reader.ReadArtifact(ctx, a)
	if err != nil {
		return err
	}
	if a.Kind != manifest.Chart {
		return s.text(content, discover.Place{Template: path.Base(a.Address)}, a.Sets, a.Name)
	}
	c, err := chart.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, addon := range owners {
		for _, set := range a.Sets {
			if err := s.rendered(c, addon, set); err != nil {
				return err
			}
		}
	}
	return nil
}

// rendered scans the output of a chart for one add-on and one Kubernetes version.
func (s *search) rendered(c *chart.Chart, addon manifest.Addon, set string) error {
	values, err := addon.ValuesText()
	if err != nil {
		return err
	}
	files, err := c.Render(chart.Options{Release: addon.Name, Namespace: addon.In(), Kubernetes: set, Values: values, APIVersions: s.kinds[set]})
	if refused, ok := errors.AsType[*chart.ValuesError](err); ok {
		s.wrong = mergeProblems(s.wrong, valuesProblems(s.cluster, addon, refused))
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		at := discover.Place{Chart: c.Name + " " + c.Version, Template: f.Name}
		if err := s.text(f.Data, at, []string{set}, addon.Name); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func (s *search) text(text []byte, at discover.Place, sets []string, owner string) error {
	images, err := discover.In(text, at)
	if err != nil {
		return err
	}
	for _, im := range images {
		s.found = append(s.found, ReferencedImage{Image: im, Sets: sets, Owners: []string{owner}})
	}
	for _, set := range sets {
		s.kinds[set] = sorted(union(s.kinds[set], discover.Definitions(text)))
	}
	return nil
}

// ownersOf returns the add-ons that an artifact belongs to; the pod network counts as an
// add-on.
func ownersOf(c *manifest.Cluster, a manifest.Artifact) []manifest.Addon {
	if a.Kind != manifest.Chart && a.Kind != manifest.File {
		return nil
	}
	var out []manifest.Addon
	for _, x := range c.Spec.Addons {
		if x.Name == a.Name && (x.Form() == a.Kind || x.Form() == "") {
			out = append(out, x)
		}
	}
	network, charted := part.NetworkChart(c)
	ext := path.Ext(a.Address)
	switch {
	case a.Name != c.Spec.Network.Plugin:
	case a.Kind == manifest.Chart && charted:
		out = append(out, network)
	case a.Kind == manifest.File && !charted && (ext == ".yaml" || ext == ".yml"):
		out = append(out, manifest.Addon{Name: a.Name})
	}
	return out
}

// mergeFound merges the findings of each image.
func mergeFound(all []ReferencedImage) []ReferencedImage {
	byRef := map[string]*ReferencedImage{}
	var lists []discover.Image
	for _, f := range all {
		lists = append(lists, f.Image)
		have, ok := byRef[f.Reference]
		if !ok {
			have = &ReferencedImage{}
			byRef[f.Reference] = have
		}
		have.Sets, have.Owners = union(have.Sets, f.Sets), union(have.Owners, f.Owners)
	}
	var out []ReferencedImage
	for _, im := range discover.Merge(lists) {
		f := byRef[im.Reference]
		out = append(out, ReferencedImage{Image: im, Sets: sorted(f.Sets), Owners: sorted(f.Owners)})
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// AddDiscovered returns l with the discovered images: new ones without a pin, and without those
// that are no longer referenced.
func AddDiscovered(l *manifest.Lock, found []ReferencedImage) *manifest.Lock {
	out := l.Clone()
	out.Images = nil
	before := map[string]manifest.ImagePin{}
	for _, im := range l.Images {
		if im.Trust != manifest.FromUpstream {
			out.Images = append(out.Images, im)
		}
		before[discover.Whole(im.Reference)] = im
	}
	for _, f := range found {
		if answered(out.Images, f.Reference) {
			continue
		}
		im := manifest.ImagePin{ID: string(manifest.Image) + "/" + f.Reference, Reference: f.Reference}
		if old, ok := before[f.Reference]; ok {
			im = old
		}
		im.Trust, im.Sets, im.Names = manifest.FromUpstream, f.Sets, nil
		for _, owner := range f.Owners {
			im.Names = append(im.Names, owner+"/"+f.Reference)
		}
		out.Images = append(out.Images, im)
	}
	out.Sort()
	return out
}

// Satisfies reports whether an image satisfies a pull of ref: by its tag, or by tag and
// digest if the digest is the same.
func Satisfies(im manifest.ImagePin, ref string) bool {
	whole := discover.Whole(im.Reference)
	tagged, digest, _ := strings.Cut(ref, "@")
	return whole == ref || digest != "" && whole == tagged && im.Digest == digest
}

func answered(images []manifest.ImagePin, ref string) bool {
	return slices.ContainsFunc(images, func(im manifest.ImagePin) bool { return Satisfies(im, ref) })
}

// Unreferenced returns the images that the config lists but nothing references.
func Unreferenced(c *manifest.Cluster, found []ReferencedImage) []string {
	var out []string
	for _, im := range c.Spec.Bundle.Images {
		whole, _, _ := strings.Cut(discover.Whole(im.Reference), "@")
		if !slices.ContainsFunc(found, func(f ReferencedImage) bool {
			used, _, _ := strings.Cut(f.Reference, "@")
			return used == whole
		}) {
			out = append(out, im.Reference)
		}
	}
	return out
}

// AdoptDiscovered returns resolved with the images that were discovered for previous. If config,
// charts and manifests are unchanged, a new discovery finds the same images; otherwise
// their pins are preserved until it has run.
func AdoptDiscovered(resolved, previous *manifest.Lock) *manifest.Lock {
	if previous == nil {
		return resolved
	}
	var sets []string
	for _, s := range resolved.Sets {
		sets = append(sets, s.Name)
	}
	out := resolved.Clone()
	for _, im := range previous.Images {
		im.Sets = slices.DeleteFunc(slices.Clone(im.Sets), func(s string) bool { return !slices.Contains(sets, s) })
		if im.Trust == manifest.FromUpstream && len(im.Sets) > 0 && !answered(out.Images, im.Reference) {
			out.Images = append(out.Images, manifest.ImagePin{ID: im.ID, Reference: im.Reference, Names: im.Names, Sets: im.Sets, Trust: im.Trust})
		}
	}
	out.Sort()
	return out
}

// WithoutUnpinned returns l without discovered images that have no pin: they are pinned after
// they are discovered again.
func WithoutUnpinned(l *manifest.Lock) *manifest.Lock {
	out := l.Clone()
	out.Images = slices.DeleteFunc(out.Images, func(im manifest.ImagePin) bool { return im.Trust == manifest.FromUpstream && !pinnedImage(im) })
	return out
}
