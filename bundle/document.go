package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// The most that one document may hold. An archive has 32,768 members; what has
// more in it was made to take memory.
const (
	maxElements = 1 << 17 // in its arrays
	maxKeys     = 1 << 19 // in its objects
	maxNested   = 64      // objects and arrays in each other
)

// decodeJSON decodes a document that readers have to agree on: no key stands
// twice in one object, for tools differ in which of them counts.
func decodeJSON(text []byte, v any) error {
	if err := plainJSON(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &FormatError{Code: CodeDocument, What: err.Error()}
	}
	return nil
}

// plainJSON looks through a document before anything is made of it.
func plainJSON(text []byte) error {
	type level struct {
		keys  map[string]bool // of an object; nil for an array
		key   bool            // a key comes next
		exact bool            // the keys are anybody's own words
	}
	var stack []level
	elements, keys := 0, 0
	exact := false // the next object is one of annotations or labels
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // how large a number may be is for its field to say
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil // whether it was one whole value is for who decodes it to say
		}
		if err != nil {
			return &FormatError{Code: CodeDocument, What: err.Error()}
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if name, ok := token.(string); ok && top != nil && top.key {
			// Go takes "Layers" for "layers", other readers do not.
			fold := name
			if !top.exact {
				fold = strings.ToLower(name)
			}
			if top.keys[fold] {
				return &FormatError{Code: CodeDocument, What: fmt.Sprintf("the key %.80q stands twice in one object, at byte %d", name, d.InputOffset())}
			}
			top.keys[fold], top.key = true, false
			exact = name == "annotations" || name == "labels"
			if keys++; keys > maxKeys {
				return &FormatError{Code: CodeLimit, What: fmt.Sprintf("a document of more than %d keys", maxKeys)}
			}
			continue
		}
		end := token == json.Delim('}') || token == json.Delim(']')
		if !end && top != nil && top.keys == nil {
			if elements++; elements > maxElements {
				return &FormatError{Code: CodeLimit, What: fmt.Sprintf("a document of more than %d elements", maxElements)}
			}
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, key: true, exact: exact})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
		if len(stack) > maxNested {
			return &FormatError{Code: CodeLimit, What: fmt.Sprintf("a document nested deeper than %d", maxNested)}
		}
		if exact = false; len(stack) > 0 { // a value has ended, or an object begun
			stack[len(stack)-1].key = stack[len(stack)-1].keys != nil
		}
	}
}

// parts is what a manifest or an index names, and what it says of itself.
type parts struct {
	MediaType string          `json:"mediaType"`
	Manifests []v1.Descriptor `json:"manifests"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
}

// check refuses a document that is one thing to who goes by the media type of its
// descriptor, and another to who looks into it.
func (m *parts) check(d v1.Descriptor) error {
	what := ""
	switch index := IsIndex(d.MediaType); {
	case m.MediaType != "" && m.MediaType != d.MediaType:
		what = fmt.Sprintf("says that it is a %.80q", m.MediaType)
	case index && (m.Config != nil || m.Layers != nil):
		what = "names layers"
	case !index && m.Manifests != nil:
		what = "names manifests"
	case !index && m.Config == nil:
		what = "names no config"
	default:
		return nil
	}
	return &FormatError{Code: CodeTree, What: fmt.Sprintf("%s is named as a %s and %s", d.Digest, d.MediaType, what)}
}
