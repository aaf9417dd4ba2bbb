package apt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// ReadFolder reads what a folder such as /etc/apt configures: sources.list, and
// in sources.list.d every .list and .sources, in apt's order. A file that
// cannot be read is a problem like any other. Nothing there gives nothing.
func ReadFolder(dir string) ([]Source, manifest.Problems) {
	files := []string{filepath.Join(dir, "sources.list")}
	var problems manifest.Problems
	parts := filepath.Join(dir, "sources.list.d")
	entries, err := os.ReadDir(parts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, manifest.Problem{File: parts, Message: err.Error()})
	}
	for _, x := range entries {
		if ext := filepath.Ext(x.Name()); ext == ".list" || ext == ".sources" {
			files = append(files, filepath.Join(parts, x.Name()))
		}
	}
	var out []Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = append(problems, manifest.Problem{File: file, Message: err.Error()})
			continue
		}
		parse := ParseList
		if strings.HasSuffix(file, ".sources") {
			parse = ParseSources
		}
		found, wrong := parse(file, string(text))
		out, problems = append(out, found...), append(problems, wrong...)
	}
	return unique(out, &problems), problems
}

// unique leaves out what is configured twice, and says so.
func unique(sources []Source, problems *manifest.Problems) []Source {
	var out []Source
	for _, s := range sources {
		i := slices.IndexFunc(out, func(x Source) bool { return x.String() == s.String() })
		if i < 0 {
			out = append(out, s)
			continue
		}
		if !out[i].SignedBy.equal(s.SignedBy) {
			*problems = append(*problems, manifest.Problem{File: s.File, Line: s.Line, Advice: "name the same keys in both",
				Message: fmt.Sprintf("%s is configured with other keys, at %s:%d", s, out[i].File, out[i].Line)})
			continue
		}
		for _, c := range s.Components {
			if slices.Contains(out[i].Components, c) {
				*problems = append(*problems, manifest.Problem{Severity: manifest.Warning, File: s.File, Line: s.Line,
					Message: fmt.Sprintf("%s %s is configured already, at %s:%d", s, c, out[i].File, out[i].Line)})
				continue
			}
			out[i].Components = append(slices.Clone(out[i].Components), c)
		}
	}
	return out
}
