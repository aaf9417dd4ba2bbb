package rpm

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// section is a part of an ini file under a name in brackets.
type section struct {
	name    string
	line    int
	values  map[string]value
	unnamed bool // the brackets hold no name, and a problem says so
}

type value struct {
	text string // further lines of it follow a line feed
	line int
}

// readINI reads what yum and dnf take for an ini file: a value goes on in lines
// that begin with a blank, "#" and ";" begin a comment at the start of a line only.
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
				problems = append(problems, manifest.Problem{Line: n, Message: "the line goes on with a value, and there is none"})
				continue
			}
			v := last.values[key]
			v.text += "\n" + strings.TrimSpace(line)
			last.values[key] = v
		case '[':
			name, rest, ok := strings.Cut(line[1:], "]")
			good := ok && name != "" && rest == ""
			if !good {
				problems = append(problems, manifest.Problem{Line: n, Message: fmt.Sprintf("%q is no name in brackets", line)})
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
