package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// clean ends the test where an output could steer a terminal.
func clean(t *testing.T, what string, out ...*bytes.Buffer) {
	t.Helper()
	for _, b := range out {
		text := b.String()
		b.Reset()
		if !utf8.ValidString(text) {
			t.Errorf("%s: bytes that are no characters in %q", what, text)
		}
		for i, r := range text {
			if steers(r) {
				t.Errorf("%s: %U in %q", what, r, text[max(0, i-40):min(len(text), i+40)])
				return
			}
		}
	}
}

// FuzzTerminal gives commands foreign text: documents, bundles, logs and arguments
// that hold it, and hosts and registries that answer with it. No command here would
// connect to an address out of a document.
func FuzzTerminal(f *testing.F) {
	for _, s := range []string{
		"\x1b]0;title\a\x1b[2J", "\u009b31m", "\x9b31m", "a\u202eb\u2066c\u200f", "one\rtwo", "\x7f\x00", "name: \"\x1b[31m\"\n", "cut \xe2\x80",
		"apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: \"\u202e\"}\nspec: {\"\u009b\": 1}\n",
	} {
		f.Add(s)
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": r.Header.Get("User-Agent") + said}}})
	}))
	f.Cleanup(registry.Close)
	at := strings.TrimPrefix(registry.URL, "http://")
	dir := f.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".kubexm", "demo"), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "document")
		line, err := json.Marshal(map[string]any{"n": 1, "prev": "", "type": "did", "host": text, "verb": text, "argv": []string{text}, "step": text, "error": text})
		if err != nil {
			t.Fatal(err)
		}
		receipt := strings.ReplaceAll(statementOf, "TEXT", string(mustJSON(t, text)))
		for path, content := range map[string]string{
			file: text, filepath.Join(dir, "receipt.json"): receipt, filepath.Join(dir, ".kubexm", "demo", "audit.jsonl"): string(line) + "\n" + text,
		} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{
			{"config", "validate", "-f", file}, {"config", "explain", text}, {"bundle", "show", file}, {"bundle", "verify", "--key", file, file},
			{"plan", "create", "-f", file}, {"audit", "show", "--workdir", dir, "--cluster", "demo"},
			{"audit", "verify", "--workdir", dir, "--cluster", "demo"}, {"receipt", "show", filepath.Join(dir, "receipt.json")}, {"receipt", "show", file},
			{"install", "--bundle", text, "--skip-checks", text}, {text}, {"bundle", "--" + text}, {"registry", "push", "--allow-unsigned", "--bundle", file, "--to", text},
			{"bundle", "pull", "--allow-unsigned", "--plain-http", "--cache-dir", dir, at + "/x:1", filepath.Join(dir, "out.tar.zst")},
		} {
			for _, output := range [][]string{nil, {"-o", "json"}} {
				var out, errs bytes.Buffer
				a := &app{in: strings.NewReader(text), out: &out, err: &errs, env: func(string) (string, bool) { return text, false }, stop: make(chan struct{})}
				a.run(t.Context(), append(args[:len(args):len(args)], output...))
				clean(t, strings.Join(args, " "), &out, &errs)
			}
		}
		ofHosts(t, text)
	})
}

// said is what a registry answers with.
const said = "\x1b[31m\u009b\u202e"

// ofHosts has hosts answer with text in the ways that commands show.
func ofHosts(t *testing.T, text string) {
	t.Helper()
	c := &manifest.Cluster{}
	c.Metadata.Name = "demo"
	c.Spec.Hosts = []manifest.Host{{Name: "m1", Address: "192.0.2.1"}, {Name: "m2", Address: "192.0.2.2"}}
	for i, err := range []error{
		&runner.CmdError{Argv: []string{text}, Exit: 1, Stderr: text, Stdout: text},
		steps.Advise(errors.New(text), "%s", text),
		steps.Findings{{Host: "m1", What: text, Advice: text}},
		fmt.Errorf("x: %w", &fs.PathError{Op: text, Path: text, Err: errors.New(text)}),
	} {
		for _, output := range []string{"text", "json"} {
			x, perr := newTrial(c, output, func(s plan.Scope) plan.Fragment {
				return plan.On(s.Hosts(), does("x.act", func(context.Context, *steps.Host) error { return err }))
			})
			if perr != nil {
				t.Fatal(perr)
			}
			x.app.out, x.app.err = console.AsWriter(&x.out), console.AsWriter(&x.err)
			if output == "json" {
				x.app.lines = console.NewLines(x.app.out, "json")
			}
			x.run(t.Context())
			clean(t, fmt.Sprint("a run ", i), &x.out, &x.err)
			x.app.report(t.Context(), installer.HostErrors{&installer.HostError{Host: text, Address: text, Err: err}})
			x.app.report(t.Context(), manifest.Problems{{Path: text, Message: text, Advice: text}})
			x.app.report(t.Context(), &refusal.Error{Err: err, Advice: text, Kind: refusal.Content})
			clean(t, fmt.Sprint("an error ", i), &x.out, &x.err)
		}
	}
	// A live frame, and lines above it.
	var b bytes.Buffer
	s := console.NewScreen(&b)
	hide := s.Show(func(int, int) []string { return []string{text} })
	fmt.Fprintln(s, text)
	hide()
	if got := frames.ReplaceAllString(b.String(), ""); strings.ContainsFunc(got, steers) {
		t.Errorf("a frame: %q", got)
	}
}

// frames are what a screen itself steers the terminal with.
var frames = regexp.MustCompile(`\r(\x1b\[[0-9]+A)?\x1b\[J`)

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// statementOf is a receipt with TEXT wherever it says something.
const statementOf = `{"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": TEXT, "digest": {"sha256": TEXT}}],
  "predicateType": "https://kubexm.mensylisir.io/receipt/v1", "predicate": {"cluster": TEXT, "kubernetes": TEXT, "who": TEXT, "kubexm": TEXT, "journal": TEXT, "config": TEXT,
  "hosts": [{"name": TEXT, "address": TEXT}]}}
`

// TestNobodyPrintsPastThePlainWriter: the process's own outputs are named in one place.
func TestNobodyPrintsPastThePlainWriter(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("console/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	direct := regexp.MustCompile(`os\.Std(out|err)|fmt\.Print|\bprintln\(|log\.(Print|Fatal)`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "main.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := direct.Find(text); at != nil {
			t.Errorf("%s prints by %s", file, at)
		}
	}
}

// steers reports whether a character could steer a terminal.
func steers(r rune) bool { return console.PlainText(string(r)) != string(r) }
