package apt

import (
	"errors"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// most is how many bytes one entry of a .sources file may have; a key may be in it.
const most = 1 << 20

// ParseSources reads sources in paragraphs, as .sources files have them:
//
//	Types: deb
//	URIs: https://host/debian
//	Suites: bookworm bookworm-updates
//	Components: main
//	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
//
// It gives the sources that can be used and every problem there is; warnings
// are of what is passed over. Paths of keys start from base, as in ParseList.
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

// field takes one field of a paragraph. Names are without regard to case.
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

// complete tells whether it has all that a source needs.
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

// unfolded takes the blank off each line of a value, and the dot off those that
// stand for an empty one.
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
