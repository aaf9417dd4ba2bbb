package vulns

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// WriteDatabase writes a vulnerability database that `govulncheck -db file://dir`
// reads; see https://go.dev/doc/security/vuln/database for its files.
func (k *Known) WriteDatabase(dir string) error {
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Fixed    string    `json:"fixed,omitempty"`
	}
	type module struct {
		Path  string `json:"path"`
		Vulns []vuln `json:"vulns"`
	}
	type withTime struct {
		SchemaVersion string    `json:"schema_version"`
		Modified      time.Time `json:"modified"`
		Entry
	}
	modules := map[string]*module{}
	files := map[string]any{}
	var ids []vuln
	for _, e := range k.Entries {
		all, err := e.affected()
		if err != nil {
			return err
		}
		ids = append(ids, vuln{ID: e.ID, Modified: k.Date})
		for _, a := range all {
			m := modules[a.Package.Name]
			if m == nil {
				m = &module{Path: a.Package.Name}
				modules[m.Path] = m
			}
			if !slices.ContainsFunc(m.Vulns, func(v vuln) bool { return v.ID == e.ID }) {
				m.Vulns = append(m.Vulns, vuln{ID: e.ID, Modified: k.Date})
			}
		}
		files["ID/"+e.ID+".json"] = withTime{SchemaVersion: "1.3.1", Modified: k.Date, Entry: e}
	}
	var sorted []*module
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		sorted = append(sorted, modules[name])
	}
	files["index/modules.json"] = sorted
	files["index/vulns.json"] = ids
	files["index/db.json"] = map[string]time.Time{"modified": k.Date}
	for name, content := range files {
		text, err := json.Marshal(content)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
