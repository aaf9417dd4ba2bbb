package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The bounds of a document that a person writes: what is beyond them is not one.
const (
	maxDocument = 1 << 20
	maxNodes    = 100_000 // with every alias followed
	maxDepth    = 50
)

// document is a parsed YAML document with the places of its fields.
type document struct {
	root     *yaml.Node
	problems Problems
	places   map[string]*yaml.Node // path → the node of its value
	written  map[string]bool       // paths of fields that the document holds
	guessed  map[string]bool       // paths of fields that a misspelt name may have meant
}

func (d *document) add(severity Severity, n *yaml.Node, path, message, advice string) {
	p := Problem{Severity: severity, Path: path, Message: message, Advice: advice}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

// parse reads exactly one mapping.
func parse(r io.Reader) *document {
	d := &document{places: map[string]*yaml.Node{}, written: map[string]bool{}, guessed: map[string]bool{}}
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		d.add(Error, nil, "", "cannot be read: "+err.Error(), "")
		return d
	}
	if len(text) > maxDocument {
		d.add(Error, nil, "", fmt.Sprintf("is larger than %d bytes", maxDocument), "a config is a few kilobytes: is this the right file?")
		return d
	}
	text = d.repairColons(text)
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var n yaml.Node
	switch err := dec.Decode(&n); {
	case errors.Is(err, io.EOF):
		d.add(Error, nil, "", "is empty", "start from `kubexm config init`")
		return d
	case err != nil:
		d.syntax(err)
		return d
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.add(Error, nil, "", "holds more than one document", "keep one config in a file")
	}
	if len(n.Content) != 1 || n.Content[0].Kind != yaml.MappingNode {
		d.add(Error, &n, "", "is not a mapping of fields", "start from `kubexm config init`")
		return d
	}
	d.root = n.Content[0]
	return d
}

// fullWidthColon is a field whose colon came from a Chinese keyboard: to YAML it
// is a part of the name, and what it says about that helps nobody.
var fullWidthColon = regexp.MustCompile(`^(\s*(?:- )?[A-Za-z][A-Za-z0-9_-]*)：`)

// repairColons reports each such colon and reads on as if it were a plain one,
// so that the other problems of the document are found too.
func (d *document) repairColons(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		m := fullWidthColon.FindSubmatch(line)
		if m == nil {
			continue
		}
		d.problems = append(d.problems, Problem{Line: i + 1, Column: utf8.RuneCount(m[1]) + 1,
			Message: fmt.Sprintf("%s is followed by a full-width colon ：", bytes.TrimSpace(m[1])), Advice: "write : and a space"})
		lines[i] = append(append(bytes.Clone(m[1]), ": "...), line[len(m[0]):]...)
	}
	return bytes.Join(lines, nil)
}

// syntax turns yaml's error into a problem with a line.
func (d *document) syntax(err error) {
	p := Problem{Message: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "), Advice: "check the indentation and the quotes there"}
	if n, _ := fmt.Sscanf(p.Message, "is not YAML: line %d:", &p.Line); n == 1 {
		_, rest, _ := strings.Cut(p.Message, fmt.Sprintf("line %d: ", p.Line))
		p.Message, p.Column = "is not YAML: "+rest, 1
	}
	d.problems = append(d.problems, p)
}
