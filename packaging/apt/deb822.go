package apt

import (
	"errors"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// most is the maximum size of an entry of a .sources file in bytes; it may contain a key.
const most = 1 << 20

// ParseSources reads sources in the deb822 format of .sources files:
//
//	Types: deb
//	URIs: https://host/debian
//	Suites: bookworm bookworm-updates
//	Components: main
//	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
//
// It returns the usable sources and all problems; warnings are about what is skipped.
// Paths of keys are relative to base, as in ParseList.
func ParseSources(file, text, base string) ([]Source, manifest.Problems) {
	var out []Source
	var problems manifest.Problems
	in := newParagraphs(strings.NewReader(text), most)
	for {
		paragraph, first, err := in.next()
		if errors.Is(err, io.EOF) {
			return out, problems
		}
		if err != nil {
			return out, append(problems, manifest.Problem{File: file, Message: err.Error()})
		}
		e := &entry{file: file, line: first, base: base}
		empty := true
		err = eachField(paragraph, func(f field) error { empty = false; e.field(first+f.line, f); return nil })
		if err != nil {
			e.problem(first, "this entry cannot be read: "+err.Error(), "")
		} else if !empty && e.complete() {
			out = append(out, e.sources()...)
		}
		problems = append(problems, e.problems...)
	}
}

// field handles one field of a paragraph. Names are case-insensitive.
func (e *entry) field(line int, f field) {
	value := string(f.value)
	words := strings.Fields(value)
	switch name := strings.ToLower(string(f.name)); name {
	case "types":
		e.types = words
	case "uris", "uri":
		e.uris = words
	case "suites", "suite":
		e.suites = words
	case "components", "component":
		e.source.Components = words
	case "enabled":
		e.off = strings.EqualFold(value, "no") || strings.EqualFold(value, "false") || value == "0"
	case "signed-by":
		if strings.Contains(value, armorBegin) {
			e.source.SignedBy.Inline = unfolded(value)
		} else {
			e.signedBy(line, words)
		}
	default:
		e.option(line, name, words)
	}
}

// complete reports whether the entry has all required fields.
func (e *entry) complete() bool {
	whole := true
	for _, x := range []struct {
		name string
		has  []string
	}{{"Types", e.types}, {"URIs", e.uris}, {"Suites", e.suites}} {
		if len(x.has) == 0 && !e.off {
			e.problem(e.line, "the entry has no "+x.name, "")
			whole = false
		}
	}
	return whole
}

// unfolded removes the leading space of each line of a value, and the dot of lines that
// represent an empty line.
func unfolded(value string) string {
	var b strings.Builder
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line == "." {
			line = ""
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
