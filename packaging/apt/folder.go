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

// ReadFolder reads the sources of a folder such as /etc/apt: sources.list, and every
// .list and .sources in sources.list.d, in apt's order. A file that cannot be read is
// reported as a problem. A missing folder has no sources.
func ReadFolder(dir string) ([]Source, manifest.Problems) {
	var out []Source
	var problems manifest.Problems
	list := filepath.Join(dir, "sources.list")
	if _, err := os.Stat(list); !errors.Is(err, fs.ErrNotExist) {
		out, problems = ReadFile(list, "")
	}
	found, wrong := ReadParts(filepath.Join(dir, "sources.list.d"), "")
	return Unique(append(out, found...), append(problems, wrong...))
}

// ReadParts reads every .list and .sources of a folder such as sources.list.d. A missing
// folder has no sources. Paths of keys are relative to base, as in ParseList.
func ReadParts(dir, base string) ([]Source, manifest.Problems) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, manifest.Problems{{File: dir, Message: err.Error()}}
	}
	var out []Source
	var problems manifest.Problems
	for _, x := range entries {
		if ext := filepath.Ext(x.Name()); ext == ".list" || ext == ".sources" {
			found, wrong := ReadFile(filepath.Join(dir, x.Name()), base)
			out, problems = append(out, found...), append(problems, wrong...)
		}
	}
	return out, problems
}

// ReadFile reads a .list or .sources file. Paths of keys are relative to base, as in
// ParseList.
func ReadFile(file, base string) ([]Source, manifest.Problems) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, manifest.Problems{{File: file, Message: err.Error()}}
	}
	if strings.HasSuffix(file, ".sources") {
		return ParseSources(file, string(text), base)
	}
	return ParseList(file, string(text), base)
}

// Unique removes sources that are configured twice, and adds a problem for each.
func Unique(sources []Source, problems manifest.Problems) ([]Source, manifest.Problems) {
	var out []Source
	for _, s := range sources {
		i := slices.IndexFunc(out, func(x Source) bool { return x.String() == s.String() })
		if i < 0 {
			out = append(out, s)
			continue
		}
		if !out[i].SignedBy.equal(s.SignedBy) {
			problems = append(problems, manifest.Problem{File: s.File, Line: s.Line, Advice: "set the same keys in both",
				Message: fmt.Sprintf("%s is also configured with other keys, at %s:%d", s, out[i].File, out[i].Line)})
			continue
		}
		for _, c := range s.Components {
			if slices.Contains(out[i].Components, c) {
				problems = append(problems, manifest.Problem{Severity: manifest.Warning, File: s.File, Line: s.Line,
					Message: fmt.Sprintf("%s %s is already configured, at %s:%d", s, c, out[i].File, out[i].Line)})
				continue
			}
			out[i].Components = append(slices.Clone(out[i].Components), c)
		}
	}
	return out, problems
}
