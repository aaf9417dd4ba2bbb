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

// Limits of one document. An archive has at most 32,768 entries; a document with more than
// these was made to exhaust memory.
const (
	maxElements = 1 << 17 // in its arrays
	maxKeys     = 1 << 19 // in its objects
	maxNested   = 64      // objects and arrays in each other
)

// decodeJSON decodes a document and rejects duplicate keys, because tools differ in which
// of the two they use.
func decodeJSON(text []byte, v any) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &FormatError{Code: CodeDocument, What: err.Error()}
	}
	return nil
}

// checkJSON checks a document before it is decoded.
func checkJSON(text []byte) error {
	type level struct {
		keys  map[string]bool // of an object; nil for an array
		key   bool            // a key comes next
		exact bool            // keys are free text and compared exactly
	}
	var stack []level
	elements, keys := 0, 0
	exact := false // the next object is one of annotations or labels
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // the decoder checks the range of a number
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil // the decoder checks that it was one complete value
		}
		if err != nil {
			return &FormatError{Code: CodeDocument, What: err.Error()}
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if name, ok := token.(string); ok && top != nil && top.key {
			// Go decodes "Layers" as "layers", other readers do not.
			fold := name
			if !top.exact {
				fold = strings.ToLower(name)
			}
			if top.keys[fold] {
				return &FormatError{Code: CodeDocument, What: fmt.Sprintf("duplicate key %.80q in one object, at byte %d", name, d.InputOffset())}
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

// parts are the descriptors in a manifest or an index, and its own media type.
type parts struct {
	MediaType string          `json:"mediaType"`
	Manifests []v1.Descriptor `json:"manifests"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
}

// check rejects a document whose content contradicts the media type of its descriptor,
// because readers may trust one or the other.
func (m *parts) check(d v1.Descriptor) error {
	what := ""
	switch index := IsIndex(d.MediaType); {
	case m.MediaType != "" && m.MediaType != d.MediaType:
		what = fmt.Sprintf("states the media type %.80q", m.MediaType)
	case index && (m.Config != nil || m.Layers != nil):
		what = "has layers"
	case !index && m.Manifests != nil:
		what = "lists manifests"
	case !index && m.Config == nil:
		what = "has no config"
	default:
		return nil
	}
	return &FormatError{Code: CodeTree, What: fmt.Sprintf("%s is listed as %s but %s", d.Digest, d.MediaType, what)}
}
