package apt

import (
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// ParseList reads sources in the one-line format of sources.list:
//
//	deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://host/debian bookworm main
//
// It returns the usable sources and all problems; warnings are about what is skipped.
// Paths of keys are relative to base; without a base they must be absolute, as in apt.
func ParseList(file, text, base string) ([]Source, manifest.Problems) {
	var out []Source
	var problems manifest.Problems
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(uncommented(line))
		if line == "" {
			continue
		}
		e := &entry{file: file, line: n, base: base}
		if e.oneLine(line) {
			out = append(out, e.sources()...)
		}
		problems = append(problems, e.problems...)
	}
	return out, problems
}

// uncommented removes a comment, which begins with a "#" outside of brackets.
func uncommented(line string) string {
	inside := false
	for i, c := range line {
		switch {
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case c == '#' && !inside:
			return line[:i]
		}
	}
	return line
}

// oneLine reads a line, and reports whether it has all required parts.
func (e *entry) oneLine(line string) bool {
	kind, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	e.types = []string{kind}
	rest = strings.TrimSpace(rest)
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		var options string
		if options, rest, ok = strings.Cut(inner, "]"); !ok {
			e.problem(e.line, "the options have no closing bracket", "")
			return false
		}
		e.options(options)
	}
	words := strings.Fields(rest)
	if len(words) < 2 {
		e.problem(e.line, "a source requires a URI and a suite", "write it as deb URI SUITE COMPONENT…")
		return false
	}
	e.uris, e.suites, e.source.Components = words[:1], words[1:2], words[2:]
	return true
}

// options reads "arch=amd64,arm64 signed-by=/path".
func (e *entry) options(text string) {
	for _, word := range strings.Fields(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" || value == "" {
			e.problem(e.line, "the option "+word+" has no value", "write it as name=value")
			continue
		}
		if op := name[len(name)-1]; op == '+' || op == '-' {
			name = strings.TrimRight(name, "+-") + string(op)
		}
		values := strings.Split(value, ",")
		if name = strings.ToLower(name); name == "signed-by" {
			e.signedBy(e.line, values)
		} else {
			e.option(e.line, name, values)
		}
	}
}
