package part

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

var update = flag.Bool("update", false, "rewrite the table in docs/reference/hardening.md")

// TestFiles: each file is listed once, with a mode that only root can read, and only the
// configuration of the cluster's runtime is listed.
func TestFiles(t *testing.T) {
	for kind, config := range map[string]string{"": "/etc/containerd/config.toml", "containerd": "/etc/containerd/config.toml", Docker: ""} {
		c := &manifest.Cluster{}
		c.Spec.Runtime.Type = kind
		seen := map[string]bool{}
		for _, s := range FilesOf(c) {
			mode, err := strconv.ParseUint(s.Value, 8, 12)
			if err != nil || mode&0o077 != 0 || !path.IsAbs(s.Name) || s.Why == "" || s.Of != manifest.OfFile || seen[s.Name] {
				t.Errorf("%+v: %v", s, err)
			}
			seen[s.Name] = true
		}
		for _, r := range Runtimes() {
			if seen[r.Config] != (r.Config == config) {
				t.Errorf("with the runtime %q: %s: %t", kind, r.Config, seen[r.Config])
			}
		}
	}
	if all := Settings(); !slices.Contains(all, manifest.Setting{Of: manifest.OfFile, Name: "/etc/containerd/config.toml", Value: "0600", Why: "containerd configuration"}) {
		t.Errorf("%v", all)
	}
}

const hardeningPage = "../../docs/reference/hardening.md"

// TestHardeningPage: the table in docs/reference/hardening.md is up to date; -update writes it.
func TestHardeningPage(t *testing.T) {
	text, err := os.ReadFile(hardeningPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- settings: written by `go test ./manifest/part -update` -->\n", "<!-- end of settings -->\n"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("no place for the table")
	}
	want := head + begin + settingsTable() + end + tail
	if *update {
		if err := os.WriteFile(hardeningPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is out of date: run go test ./manifest/part -update", hardeningPage)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| of | setting | value | relaxed by | changed by | what for |\n|---|---|---|---|---|---|\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, s := range Settings() {
		name, value := s.Name, s.Value
		switch s.Of {
		case manifest.OfAPIServer, manifest.OfControllerManager, manifest.OfScheduler, manifest.OfEtcd:
			name = "--" + name
		}
		if s.From > 0 {
			value = fmt.Sprintf("%s` from 1.%d on `", value, s.From)
		}
		field := code(strings.TrimPrefix(s.Field, "spec."))
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", s.Of, name, strings.ReplaceAll(strings.TrimSuffix(code(value), " ``"), ",", ", "), code(s.Group), field, s.Why)
	}
	return b.String() + "\n"
}
