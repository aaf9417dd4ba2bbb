package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// WriteJSON writes v as indented JSON, in the format of every -o json.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// WriteYAML writes v as YAML, with the field names of WriteJSON.
func WriteYAML(w io.Writer, v any) error {
	text, err := yamlText(v)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// mostInRow is the maximum length of a list that is written on one line of YAML.
const mostInRow = 60

func yamlText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var node yaml.Node // JSON is YAML, and a node preserves the order of fields
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&node), e.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// blockStyle changes a document from JSON's flow style to block style, except for empty
// values and short lists of scalars.
func blockStyle(n *yaml.Node) {
	words := 0
	for _, c := range n.Content {
		words += len(c.Value) + 2
		if c.Kind != yaml.ScalarNode {
			words = mostInRow
		}
	}
	if n.Kind != yaml.SequenceNode || words >= mostInRow {
		n.Style = 0
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}
