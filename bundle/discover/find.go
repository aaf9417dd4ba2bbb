package discover

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Place is the location of an image in the manifests.
type Place struct {
	Chart    string `json:"chart,omitempty" yaml:"chart,omitempty"`       // "cert-manager 1.17.1"
	Template string `json:"template,omitempty" yaml:"template,omitempty"` // file in the chart, or the manifest
	Kind     string `json:"kind,omitempty" yaml:"kind,omitempty"`         // "Deployment"
	Name     string `json:"name,omitempty" yaml:"name,omitempty"`         // of the object
	Path     string `json:"path" yaml:"path"`                             // in the object: "spec.template.spec.containers[0].image"
}

// Image is one image with every place that references it.
type Image struct {
	Reference string  `json:"image" yaml:"image"` // complete: with registry, and with tag or digest or both
	Places    []Place `json:"found" yaml:"found"`
}

// Limits of one manifest: aliases can make a small text large.
const (
	maxAlias  = 50_000 // maximum number of nodes repeated by aliases
	maxDepth  = 200
	maxText   = 64 << 20
	maxWithin = 3 // maximum depth of documents in strings
)

// In returns the images in a text of YAML documents, each reference once, sorted. at is the
// location of the text.
func In(text []byte, at Place) ([]Image, error) {
	s := &scan{at: at, left: maxAlias}
	if err := s.text(text, 0); err != nil {
		return nil, err
	}
	return Merge(s.found), nil
}

// Merge merges lists of images, sorted, each image and place once.
func Merge(lists ...[]Image) []Image {
	places := map[string][]Place{}
	for _, list := range lists {
		for _, im := range list {
			places[im.Reference] = append(places[im.Reference], im.Places...)
		}
	}
	out := make([]Image, 0, len(places))
	for ref, at := range places {
		slices.SortFunc(at, comparePlaces)
		out = append(out, Image{Reference: ref, Places: slices.Compact(at)})
	}
	slices.SortFunc(out, func(a, b Image) int { return cmp.Compare(a.Reference, b.Reference) })
	return out
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Chart, b.Chart), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
}

// scan is the state of scanning one text.
type scan struct {
	at     Place // location of the current object
	found  []Image
	left   int // number of nodes that may still be visited
	within int
}

var errTooLarge = errors.New("too large, too deeply nested, or an anchor that contains itself")

// separator ends a document in Helm's view: templates that trim too much leave "---# a
// comment", which YAML parsers do not accept as a separator.
var separator = regexp.MustCompile(`(?m)^---`)

// documents splits a text into its YAML documents.
func documents(text []byte) [][]byte {
	var out [][]byte
	from := 0
	for _, at := range separator.FindAllIndex(text, -1) {
		out = append(out, text[from:at[0]])
		from = at[1]
	}
	return append(out, text[from:])
}

// text scans every document.
func (s *scan) text(text []byte, within int) error {
	if len(text) > maxText {
		return errTooLarge
	}
	s.within = within
	for i, part := range documents(text) {
		d := yaml.NewDecoder(bytes.NewReader(part))
		for {
			var doc yaml.Node
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && len(doc.Content) == 1 {
				s.left += count(&doc)
				err = s.object(doc.Content[0], "")
			}
			if err != nil {
				return fmt.Errorf("document %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// object scans one object, or each item of a List.
func (s *scan) object(n *yaml.Node, path string) error {
	n = real(n)
	before := s.at
	defer func() { s.at = before }()
	if kind := text(child(n, "kind")); kind != "" && s.within == 0 {
		s.at.Kind, s.at.Name = kind, text(child(child(n, "metadata"), "name"))
	}
	if items := child(n, "items"); items != nil && items.Kind == yaml.SequenceNode && text(child(n, "kind")) != "" {
		for i, item := range items.Content {
			if err := s.object(item, index(join(path, "items"), i)); err != nil {
				return err
			}
		}
		return nil
	}
	if s.at.Kind == "CustomResourceDefinition" {
		return s.schema(n, path, 0)
	}
	return s.walk(n, where{path: path}, 0)
}

// add records an image found at path.
func (s *scan) add(ref, path string) {
	at := s.at
	at.Path = path
	s.found = append(s.found, Image{Reference: ref, Places: []Place{at}})
}

// visit counts a node against the limits.
func (s *scan) visit(depth int) error {
	if s.left--; s.left < 0 || depth > maxDepth {
		return errTooLarge
	}
	return nil
}

// count returns the number of nodes in a tree; an alias counts as one.
func count(n *yaml.Node) int {
	all := 1
	for _, c := range n.Content {
		all += count(c)
	}
	return all
}

// real resolves an alias.
func real(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode; i++ {
		if i > maxDepth {
			return nil
		}
		n = n.Alias
	}
	return n
}

// child returns the value of a key, nil if it does not exist.
func child(n *yaml.Node, key string) *yaml.Node {
	n = real(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return real(n.Content[i+1])
		}
	}
	return nil
}

// text returns a scalar's text, "" for null and everything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
