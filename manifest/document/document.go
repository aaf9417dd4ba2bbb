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

// The bounds of a document that a person writes: what is beyond them is not one.
const (
	maxBytes = 1 << 20
	maxNodes = 100_000 // with every alias followed
	maxDepth = 50
)

// Document is a parsed YAML document with the places of its fields.
type Document struct {
	schema   Schema
	root     *yaml.Node
	problems Problems
	places   map[string]*yaml.Node // path → the node of its value
	written  map[string]bool       // paths of fields that the document holds
	guessed  map[string]bool       // paths of fields that a misspelt name may have meant
	moved    map[string]string     // paths of fields → the second spelling that they are written in
	made     map[string]string     // paths of mappings that stand in the document only as a second spelling of a part
	more     bool                  // there were more problems than are listed
}

// MaxProblems is the most that one reading reports: nobody mends more at once,
// and a file that is no config at all has a problem on every line.
const MaxProblems = 200

// full tells whether further problems are left out. The first error always gets in.
func (d *Document) full() bool { return len(d.problems) >= MaxProblems && d.problems.Err() != nil }

// Root is the mapping that the document is; nil where it is none.
func (d *Document) Root() *yaml.Node { return d.root }

// Written tells whether the document holds the field at a path.
func (d *Document) Written(path string) bool { return d.written[path] }

// Node is the value of the field at a path; nil where it is not written.
func (d *Document) Node(path string) *yaml.Node { return d.places[path] }

// Mark notes that the field at a path is written, as a part of n: for who reads a type
// from a node itself.
func (d *Document) Mark(path string, n *yaml.Node) { d.places[path], d.written[path] = n, true }

// Failed tells whether an error was found so far.
func (d *Document) Failed() bool { return d.problems.Err() != nil }

// Problems lists what was found so far, sorted; those under second spellings have the
// paths that the document has. It is called once, at the end.
func (d *Document) Problems() Problems {
	for i, p := range d.problems {
		d.problems[i].Path = d.AsWritten(p.Path)
	}
	d.problems.Sort()
	if d.more {
		d.problems = append(d.problems, Problem{Message: fmt.Sprintf("has more problems than these %d", len(d.problems)), Advice: "mend these first"})
	}
	return d.problems
}

// Add takes down what is wrong at a node, as far as there is room for one more.
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

// Parse reads exactly one mapping. Where that fails, Root is nil, and Problems say why.
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
		d.Add(Error, nil, "", "holds more than one document", "keep one "+s.Name+" in a file")
	}
	if len(n.Content) != 1 || n.Content[0].Kind != yaml.MappingNode {
		d.Add(Error, &n, "", "is not a mapping of fields", s.Start)
		return d
	}
	d.root = n.Content[0]
	return d
}

// withoutLine gives yaml's words alone: its line is often that of the mapping
// around the place.
func withoutLine(err error) string {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		_, message, _ = strings.Cut(rest, ": ")
	}
	return message
}

// brokenLine finds the line that yaml stumbles over: the last one of the shortest
// beginning of the text that it refuses for the same reason.
func brokenLine(text []byte, err error) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	want := withoutLine(err)
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		var n yaml.Node
		err := yaml.Unmarshal(bytes.Join(lines[:i+1], nil), &n)
		return err != nil && withoutLine(err) == want
	})
}

// fullWidthColon is a field whose colon came from a Chinese keyboard: to YAML it
// is a part of the name, and what it says about that helps nobody.
var fullWidthColon = regexp.MustCompile(`^(\s*(?:- )?[A-Za-z][A-Za-z0-9_-]*)：`)

// textStarts is a line whose value is the text on the lines below it.
var textStarts = regexp.MustCompile(`^( *(?:- +)*)(?:[^#\s].*:[ \t]+)?[|>][-+0-9]*[ \t]*(?:#.*)?\r?\n?$`)

// textBelow tells how far in what holds the text below line stands, -1 for no
// text: the lines of the text are indented further.
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

// repairColons reports each such colon and reads on as if it were a plain one,
// so that the other problems of the document are found too.
func (d *Document) repairColons(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	inside := -1 // the indentation of what holds a text of several lines
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

// syntax turns yaml's error into a problem with a line. Whatever it quotes from
// the document stays out: it may be a password that lacks its quotes.
func (d *Document) syntax(text []byte, err error) {
	p := Problem{Message: withoutLine(err), Line: brokenLine(text, err), Column: 1, Advice: "check the indentation and the quotes there, and in the line before"}
	switch {
	case strings.Contains(p.Message, "cannot start any token"):
		p.Advice = "indent with spaces, not tabs, and put quotes around a value that begins with @, %, ` or a tab"
	case strings.Contains(p.Message, "unknown anchor"):
		p.Message, p.Advice = "a value that begins with * refers to an anchor that is not there", "put quotes around it"
	case strings.Contains(p.Message, "control characters"):
		p.Advice = "save the file as plain text in UTF-8"
	}
	p.Message = "is not YAML: " + p.Message
	d.problems = append(d.problems, p)
}
