package manifest

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
	moved    map[string]string     // paths of fields → the second spelling that they are written in
	made     map[string]string     // paths of mappings that stand in the document only as a second spelling of a part
	sources  bool                  // the document is of kind Sources
	more     bool                  // there were more problems than are listed
}

// maxProblems is the most that one reading reports: nobody mends more at once,
// and a file that is no config at all has a problem on every line.
const maxProblems = 200

// full tells whether further problems are left out. The first error always gets in.
func (d *document) full() bool { return len(d.problems) >= maxProblems && d.problems.Err() != nil }

// finish sorts the problems and gives those under second spellings the paths
// that the document has.
func (d *document) finish() Problems {
	for i, p := range d.problems {
		d.problems[i].Path = d.asWritten(p.Path)
	}
	d.problems.Sort()
	if d.more {
		d.problems = append(d.problems, Problem{Message: fmt.Sprintf("has more problems than these %d", len(d.problems)), Advice: "mend these first"})
	}
	return d.problems
}

func (d *document) add(severity Severity, n *yaml.Node, path, message, advice string) {
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

func newDocument() *document {
	return &document{places: map[string]*yaml.Node{}, written: map[string]bool{}, guessed: map[string]bool{},
		moved: map[string]string{}, made: map[string]string{}}
}

// parse reads exactly one mapping.
func parse(r io.Reader) *document {
	d := newDocument()
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
		d.syntax(text, err)
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
func (d *document) repairColons(text []byte) []byte {
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
func (d *document) syntax(text []byte, err error) {
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
