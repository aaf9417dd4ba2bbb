package rpm

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// section is a section of an INI file.
type section struct {
	name    string
	line    int
	values  map[string]value
	unnamed bool // its name is invalid, which a problem reports
}

type value struct {
	text string // continuation lines are separated by line feeds
	line int
}

// readINI parses the INI format of yum and dnf: lines that begin with a space continue a
// value; "#" and ";" begin a comment only at the start of a line.
func readINI(content []byte) ([]section, manifest.Problems) {
	var out []section
	var problems manifest.Problems
	key := ""
	n := 0
	text := strings.TrimPrefix(strings.ReplaceAll(string(content), "\r\n", "\n"), "\ufeff")
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n\t ")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		var last *section
		if len(out) > 0 {
			last = &out[len(out)-1]
		}
		switch line[0] {
		case ' ', '\t':
			if last == nil || key == "" {
				problems = append(problems, manifest.Problem{Line: n, Message: "the line continues a value, but no value precedes it"})
				continue
			}
			v := last.values[key]
			v.text += "\n" + strings.TrimSpace(line)
			last.values[key] = v
		case '[':
			name, rest, ok := strings.Cut(line[1:], "]")
			good := ok && name != "" && rest == ""
			if !good {
				problems = append(problems, manifest.Problem{Line: n, Message: fmt.Sprintf("%q is not a name in brackets", line)})
			}
			out, key = append(out, section{name: name, line: n, unnamed: !good, values: map[string]value{}}), ""
		default:
			i := strings.IndexAny(line, "=:")
			if last == nil || i <= 0 {
				problems = append(problems, manifest.Problem{Line: n, Message: fmt.Sprintf("%q is neither a name in brackets nor key=value", line)})
				key = ""
				continue
			}
			key = strings.ToLower(strings.TrimSpace(line[:i]))
			last.values[key] = value{strings.TrimSpace(line[i+1:]), n}
		}
	}
	return out, problems
}
