package vulns_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mensylisir/kubexm/testdata/built"
	"github.com/mensylisir/kubexm/testdata/vulns"
)

// scan has govulncheck look through a program, and gives what it found in it that
// is called: identifiers, sorted.
func scan(t *testing.T, tool, program string, k *vulns.Known) []string {
	t.Helper()
	dir := t.TempDir()
	if err := k.WriteDatabase(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool, "-db", "file://"+filepath.ToSlash(dir), "-mode", "binary", "-format", "json", program)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var ids []string
	var read bool
	d := json.NewDecoder(bytes.NewReader(out))
	for d.More() {
		var m struct {
			Config  *struct{ DB string }
			Finding *struct {
				OSV   string
				Trace []struct{ Module, Version, Package, Function string }
			}
		}
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.Config != nil {
			read = strings.HasPrefix(m.Config.DB, "file://")
		}
		if m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "" {
			ids = append(ids, m.Finding.OSV)
		}
	}
	if !read {
		t.Fatalf("another database was asked: %s", out[:min(len(out), 500)])
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// accepted are entries that no version of the module mends, and why they do no harm.
var accepted = map[string]string{
	"GO-2026-4529": "cosign v2 took certificates whose authority had expired. kubexm makes keys and writes bundles with cosign, and verifies with sigstore-go alone",
	"GO-2026-5932": "golang.org/x/crypto/openpgp has no maintainer. Rekor's table of key formats links it; the entries of " +
		"transparency logs that count here, dsse and hashedrekord, are read with X.509 keys alone, and what they say counts only with the log's own signature",
}

// TestNothingKnown: no vulnerability that is known is in what kubexm is built of,
// and one that were would be found.
func TestNothingKnown(t *testing.T) {
	known, err := vulns.Read()
	if err != nil {
		t.Fatal(err)
	}
	// What is linked already is not linked again.
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools/vuln/go.mod", "-n", "golang.org/x/vuln/cmd/govulncheck").Output()
	if err != nil {
		t.Fatalf("build govulncheck: %v", err)
	}
	tool, program := strings.TrimSpace(string(path)), built.Kubexm(t)
	var found []string
	for _, id := range scan(t, tool, program, known) {
		if accepted[id] == "" {
			found = append(found, id)
		}
	}
	if len(found) > 0 {
		t.Errorf("kubexm has what is known as %v: raise the modules that have it, or Go", found)
	}
	other := *known
	other.Entries = append(slices.Clone(known.Entries), vulns.Entry{ID: "GO-0000-0001", Affected: json.RawMessage(`[{"package": {"name": "github.com/spf13/cobra", "ecosystem": "Go"},
		"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
		"ecosystem_specific": {"imports": [{"path": "github.com/spf13/cobra", "symbols": ["Command.ExecuteContextC"]}]}}]`)})
	if found := scan(t, tool, program, &other); !slices.Contains(found, "GO-0000-0001") {
		t.Errorf("what is in kubexm was not found: %v", found)
	}
}

// TestEveryModuleWasAskedFor: known.json was made with all modules that kubexm is
// built of by now.
func TestEveryModuleWasAskedFor(t *testing.T) {
	known, err := vulns.Read()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/kubexm")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	if len(modules) < 20 {
		t.Fatalf("only %d packages", len(modules))
	}
	for _, m := range slices.Compact(slices.Sorted(slices.Values(modules))) {
		if !slices.Contains(known.Modules, m) && m != "github.com/mensylisir/kubexm" {
			t.Errorf("known.json was made before %s came: run make vulns", m)
		}
	}
}

func TestDistil(t *testing.T) {
	osv := fstest.MapFS{
		"GO-2026-0001.json": {Data: []byte(`{"id": "GO-2026-0001", "summary": "text", "aliases": ["CVE-1"], "affected": [{"package": {"name": "a.test/a"}}, {"package": {"name": "a.test/b"}}]}`)},
		"GO-2026-0002.json": {Data: []byte(`{"id": "GO-2026-0002", "affected": [{"package": {"name": "a.test/ab"}}]}`)},
	}
	k, err := vulns.Distil(osv, []string{"a.test/b", "a.test/b"})
	if err != nil || len(k.Entries) != 1 || k.Entries[0].ID != "GO-2026-0001" || len(k.Modules) != 1 {
		t.Fatalf("%+v, %v", k, err)
	}
	for name, bad := range map[string]fstest.MapFS{
		"empty":       {},
		"no JSON":     {"GO-1.json": {Data: []byte("{")}},
		"other name":  {"GO-1.json": {Data: []byte(`{"id": "GO-2", "affected": []}`)}},
		"no affected": {"GO-1.json": {Data: []byte(`{"id": "GO-1", "affected": 7}`)}},
	} {
		if _, err := vulns.Distil(bad, nil); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
