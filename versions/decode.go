package versions

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// DocumentKind is the value of kind in a document of the version matrix.
const DocumentKind = "Versions"

// maxDocument is the maximum size of a document in bytes. The largest embedded document is
// smaller than 64 KiB.
const maxDocument = 8 << 20

// Document is one file of the version matrix: an embedded file or an overlay.
type Document struct {
	APIVersion string                `yaml:"apiVersion" json:"apiVersion"`
	Kind       string                `yaml:"kind" json:"kind"`
	Components map[string]*Component `yaml:"components,omitempty" json:"components,omitempty"`
	// Images pins references with registry and tag to a digest: "sha256:…" of the index, or of
	// the manifest if there is no index.
	Images map[string]string `yaml:"images,omitempty" json:"images,omitempty"`
}

// reader decodes a document and collects all problems.
type reader struct {
	problems manifest.Problems
}

// decode reads one document strictly. Problems have line, column and path.
func decode(in io.Reader) (*Document, manifest.Problems) {
	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err != nil {
		return nil, manifest.Problems{{Message: "cannot be read: " + err.Error()}}
	}
	if len(text) > maxDocument {
		return nil, manifest.Problems{{Message: fmt.Sprintf("is larger than %d bytes", maxDocument)}}
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var root yaml.Node
	if err := d.Decode(&root); err != nil {
		p := manifest.Problem{Message: strings.TrimPrefix(err.Error(), "yaml: ")}
		if errors.Is(err, io.EOF) {
			p.Message = "is empty"
		}
		if n, _ := fmt.Sscanf(p.Message, "line %d:", &p.Line); n == 1 {
			_, p.Message, _ = strings.Cut(p.Message, ": ")
			p.Column = 1
		}
		return nil, manifest.Problems{p}
	}
	r := &reader{}
	doc := r.document(root.Content[0])
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.add(&root, "", "contains a second document", "write one document per file")
	}
	return doc, r.problems
}

func (r *reader) add(n *yaml.Node, path, message, advice string) {
	r.problems = append(r.problems, manifest.Problem{Line: n.Line, Column: n.Column, Path: path, Message: message, Advice: advice})
}

// field reads one value of a mapping.
type field func(n *yaml.Node, path string)

// mapping passes every value of n to the reader of its key, and adds a problem for unknown
// keys; known lists the known ones.
func (r *reader) mapping(n *yaml.Node, path string, known []string, reader func(key string) field) {
	r.each(n, path, func(key *yaml.Node, value *yaml.Node, at string) {
		if read := reader(key.Value); read != nil {
			read(value, at)
			return
		}
		r.add(key, at, "unknown field", nearest(key.Value, slices.Clone(known)))
	})
}

// each visits the pairs of a mapping. A repeated key is a problem.
func (r *reader) each(n *yaml.Node, path string, visit func(key, value *yaml.Node, at string)) {
	if n.Kind == yaml.AliasNode || n.Kind != yaml.MappingNode {
		r.add(n, path, "is "+shape(n)+", not a mapping", "write key: value pairs")
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if key.Kind != yaml.ScalarNode {
			r.add(key, path, "has a key that is "+shape(key), "write plain keys")
			continue
		}
		if seen[key.Value] {
			r.add(key, at, "is set twice", "keep one of the two")
			continue
		}
		seen[key.Value] = true
		visit(key, value, at)
	}
}

func (r *reader) list(n *yaml.Node, path string, visit field) {
	if n.Kind != yaml.SequenceNode {
		r.add(n, path, "is "+shape(n)+", not a list", "write it as a list, [a, b]")
		return
	}
	for i, item := range n.Content {
		visit(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// text reads a scalar. Each check returns a reason if the value is invalid, or "".
func (r *reader) text(into *string, checks ...func(string) string) field {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.add(n, path, "is "+shape(n)+", not text", "")
			return
		}
		for _, check := range checks {
			if why := check(n.Value); why != "" {
				r.add(n, path, fmt.Sprintf("%q %s", n.Value, why), "")
				return
			}
		}
		*into = n.Value
	}
}

func (r *reader) texts(into *[]string, checks ...func(string) string) field {
	return func(n *yaml.Node, path string) {
		*into = []string{}
		r.list(n, path, func(item *yaml.Node, at string) {
			var s string
			r.text(&s, checks...)(item, at)
			*into = append(*into, s)
		})
	}
}

func (r *reader) textMap(into *map[string]string, keys func(string) string, values ...func(string) string) field {
	return func(n *yaml.Node, path string) {
		*into = map[string]string{}
		r.each(n, path, func(key, value *yaml.Node, at string) {
			if why := keys(key.Value); why != "" {
				r.add(key, at, fmt.Sprintf("%q %s", key.Value, why), "")
				return
			}
			var s string
			r.text(&s, values...)(value, at)
			(*into)[key.Value] = s
		})
	}
}

func (r *reader) boolean(into *bool) field {
	return func(n *yaml.Node, path string) {
		if err := n.Decode(into); err != nil || n.Tag != "!!bool" {
			r.add(n, path, "is "+shape(n)+", not true or false", "")
		}
	}
}

// nearest returns advice: the known word that is probably meant, or else all known words.
func nearest(word string, known []string) string {
	slices.Sort(known)
	best, distance := "", len(word)/2+2
	for _, k := range known {
		if len(word) > 1 && strings.HasPrefix(k, word) {
			return "did you mean " + k
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return "did you mean " + best
	}
	return "use one of: " + strings.Join(known, ", ")
}

func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		if n.Tag == "!!null" {
			return "empty"
		}
		return fmt.Sprintf("%q", n.Value)
	}
}

func isRange(s string) string {
	if _, err := semver.NewConstraint(s); err != nil {
		return "is not a version range, as in \">=1.24, <1.33\""
	}
	return ""
}
