package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of a document. A document that a person writes is far below them.
const (
	maxBytes = 1 << 20
	maxNodes = 100_000 // with all aliases expanded
	maxDepth = 50
)

// Document is a parsed YAML document with the places of its fields.
type Document struct {
	schema   Schema
	root     *yaml.Node
	problems Problems
	places   map[string]*yaml.Node // path → the node of its value
	written  map[string]bool       // paths of fields in the document
	guessed  map[string]bool       // paths of fields that a misspelt name may mean
	moved    map[string]string     // paths of fields → their second spelling in the document
	made     map[string]string     // paths of mappings → the second spelling of a field below, if only that is in the document
	more     bool                  // there were more problems than are listed
}

// MaxProblems is the maximum number of problems in one report. A file that is not a config at
// all can have a problem on every line.
const MaxProblems = 200

// full reports whether further problems are dropped. The first error is never dropped.
func (d *Document) full() bool { return len(d.problems) >= MaxProblems && d.problems.Err() != nil }

// Root returns the top-level mapping; nil if the document is not a mapping.
func (d *Document) Root() *yaml.Node { return d.root }

// Written reports whether the document sets the field at a path.
func (d *Document) Written(path string) bool { return d.written[path] }

// Node returns the value of the field at a path; nil if the document does not set it.
func (d *Document) Node(path string) *yaml.Node { return d.places[path] }

// Mark records that the document sets the field at a path, as a part of n. Functions of type
// Read call it for the fields that they read themselves.
func (d *Document) Mark(path string, n *yaml.Node) { d.places[path], d.written[path] = n, true }

// Failed reports whether there is an error so far.
func (d *Document) Failed() bool { return d.problems.Err() != nil }

// Problems returns the problems found so far, sorted, with paths in the spelling of the
// document. Call it once, at the end.
func (d *Document) Problems() Problems {
	for i, p := range d.problems {
		d.problems[i].Path = d.AsWritten(p.Path)
	}
	d.problems.Sort()
	if d.more {
		d.problems = append(d.problems, Problem{Message: fmt.Sprintf("has more problems than these %d", len(d.problems)), Advice: "fix these first"})
	}
	return d.problems
}

// Add adds a problem at a node, unless there are already MaxProblems.
func (d *Document) Add(severity Severity, n *yaml.Node, path, message, advice string) {
	if d.full() {
		d.more = true
		return
	}
	p := Problem{Severity: severity, Path: path, Message: message, Advice: advice}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

func newDocument(s Schema) *Document {
	return &Document{schema: s, places: map[string]*yaml.Node{}, written: map[string]bool{}, guessed: map[string]bool{},
		moved: map[string]string{}, made: map[string]string{}}
}

// Parse reads exactly one mapping. If that fails, Root returns nil and Problems has the reason.
func Parse(r io.Reader, s Schema) *Document {
	d := newDocument(s)
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		d.Add(Error, nil, "", "cannot be read: "+err.Error(), "")
		return d
	}
	if len(text) > maxBytes {
		d.Add(Error, nil, "", fmt.Sprintf("is larger than %d bytes", maxBytes), "a "+s.Name+" is a few kilobytes: is this the right file?")
		return d
	}
	text = d.repairColons(text)
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var n yaml.Node
	switch err := dec.Decode(&n); {
	case errors.Is(err, io.EOF):
		d.Add(Error, nil, "", "is empty", s.Start)
		return d
	case err != nil:
		d.syntax(text, err)
		return d
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.Add(Error, nil, "", "contains more than one document", "write one "+s.Name+" per file")
	}
	if len(n.Content) != 1 || n.Content[0].Kind != yaml.MappingNode {
		d.Add(Error, &n, "", "is not a mapping of fields", s.Start)
		return d
	}
	d.root = n.Content[0]
	return d
}

// withoutLine returns yaml's message without the line number, which is often that of the
// enclosing mapping.
func withoutLine(err error) string {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		_, message, _ = strings.Cut(rest, ": ")
	}
	return message
}

// brokenLine returns the line of a syntax error: the last line of the shortest prefix of the
// text that yaml rejects with the same message.
func brokenLine(text []byte, err error) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	want := withoutLine(err)
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		var n yaml.Node
		err := yaml.Unmarshal(bytes.Join(lines[:i+1], nil), &n)
		return err != nil && withoutLine(err) == want
	})
}

// fullWidthColon matches a field with a full-width colon, as typed with a Chinese input method.
// YAML reads the colon as a part of the name, and its error message is misleading.
var fullWidthColon = regexp.MustCompile(`^(\s*(?:- )?[A-Za-z][A-Za-z0-9_-]*)：`)

// textStarts matches a line whose value is a block scalar on the following lines.
var textStarts = regexp.MustCompile(`^( *(?:- +)*)(?:[^#\s].*:[ \t]+)?[|>][-+0-9]*[ \t]*(?:#.*)?\r?\n?$`)

// textBelow returns the indentation of the field or list entry whose block scalar begins after
// line; -1 if none begins. The lines of the block scalar are indented further.
func textBelow(line []byte) int {
	m := textStarts.FindSubmatchIndex(line)
	switch {
	case m == nil:
		return -1
	case line[m[3]] == '|' || line[m[3]] == '>': // an entry of a list, not a field
		return bytes.LastIndexByte(line[:m[3]], '-')
	}
	return m[3]
}

// repairColons reports full-width colons and replaces them by plain ones, so that the other
// problems of the document are found too.
func (d *Document) repairColons(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	inside := -1 // the indentation of the field with the current block scalar
	for i, line := range lines {
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		if inside >= 0 && (indent > inside || len(bytes.TrimSpace(line)) == 0) {
			continue
		}
		inside = textBelow(line)
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

// syntax converts yaml's error to a problem with a line. It leaves out quotes from the
// document, which may contain a password.
func (d *Document) syntax(text []byte, err error) {
	p := Problem{Message: withoutLine(err), Line: brokenLine(text, err), Column: 1, Advice: "check indentation and quotes in this line and in the line before"}
	switch {
	case strings.Contains(p.Message, "cannot start any token"):
		p.Advice = "indent with spaces, not tabs, and put quotes around a value that begins with @, %, ` or a tab"
	case strings.Contains(p.Message, "unknown anchor"):
		p.Message, p.Advice = "a value that begins with * refers to an anchor that does not exist", "put quotes around it"
	case strings.Contains(p.Message, "control characters"):
		p.Advice = "save the file as plain text in UTF-8"
	}
	p.Message = "is not YAML: " + p.Message
	d.problems = append(d.problems, p)
}
