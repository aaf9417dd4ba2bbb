package vulns

import (
	_ "embed" // for known.json
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed known.json
var knownText []byte

// Known are the known vulnerabilities of some modules.
type Known struct {
	Commit  string    `json:"commit"`  // of the vulnerability database
	Date    time.Time `json:"date"`    // of that commit
	Modules []string  `json:"modules"` // the modules that were looked up, sorted; one without an entry has none
	Entries []Entry   `json:"entries"` // by identifier
}

// Entry is one vulnerability, in the fields of the OSV schema that govulncheck reads.
type Entry struct {
	ID        string          `json:"id"`
	Aliases   []string        `json:"aliases,omitempty"`
	Withdrawn *time.Time      `json:"withdrawn,omitempty"`
	Affected  json.RawMessage `json:"affected"`
}

// affected is the part of an entry that this package uses.
type affected struct {
	Package struct{ Name string }
	Ranges  []struct {
		Events []struct{ Introduced, Fixed string }
	}
}

func (e Entry) affected() ([]affected, error) {
	var all []affected
	if err := json.Unmarshal(e.Affected, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", e.ID, err)
	}
	return all, nil
}

// Read returns the content of known.json.
func Read() (*Known, error) {
	k := &Known{}
	if err := json.Unmarshal(knownText, k); err != nil {
		return nil, fmt.Errorf("known.json: %w", err)
	}
	return k, nil
}

// Distil extracts the entries for modules from the files of a vulnerability database: a folder
// of OSV files.
func Distil(osv fs.FS, modules []string) (*Known, error) {
	k := &Known{Modules: slices.Compact(slices.Sorted(slices.Values(modules)))}
	files, err := fs.Glob(osv, "GO-*.json")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder has no GO-*.json")
	}
	for _, name := range files {
		text, err := fs.ReadFile(osv, name)
		if err != nil {
			return nil, err
		}
		var e Entry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if e.ID != strings.TrimSuffix(path.Base(name), ".json") {
			return nil, fmt.Errorf("%s: has the identifier %q", name, e.ID)
		}
		all, err := e.affected()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(a affected) bool { return slices.Contains(k.Modules, a.Package.Name) }) {
			k.Entries = append(k.Entries, e)
		}
	}
	return k, nil
}
