package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// at runs a command line in this process.
func ran(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(string) (string, bool) { return "", false }}
	code = a.run(t.Context(), args)
	return code, out.String(), err.String()
}

// TestMistyped: who types another tool's word, or a wrong letter, is told the right
// one.
func TestMistyped(t *testing.T) {
	for line, want := range map[string]string{
		// Other tools' words.
		"up":                            "kubexm install",
		"deploy -f config.yaml":         "kubexm install",
		"apply -f config.yaml":          "kubexm install",
		"init":                          "kubexm config init",
		"create-cluster -f config.yaml": "kubexm create cluster",
		"create_cluster":                "kubexm create cluster",
		"cluster create":                "kubexm create cluster",
		"cluster delete":                "kubexm delete cluster",
		"delete-cluster --yes":          "kubexm delete cluster",
		"destroy":                       "kubexm delete cluster",
		"uninstall -f config.yaml":      "kubexm delete cluster",
		"down":                          "kubexm delete cluster",
		"remove cluster":                "kubexm delete cluster",
		"status":                        "kubexm get nodes",
		"nodes":                         "kubexm get nodes",
		"list nodes":                    "kubexm get nodes",
		"node list":                     "kubexm get nodes",
		"bundle make":                   "kubexm bundle build",
		"bundle create -f config.yaml":  "kubexm bundle build",
		"build -f config.yaml":          "kubexm bundle build",
		"artifact export":               "kubexm bundle build",
		"bundle inspect demo.tar.zst":   "kubexm bundle show",
		"bundle contents demo.tar.zst":  "kubexm bundle ls",
		"bundle unpack demo.tar.zst":    "kubexm bundle extract",
		"bundle validate demo.tar.zst":  "kubexm bundle verify",
		"verify demo.tar.zst":           "kubexm bundle verify",
		"validate -f config.yaml":       "kubexm config validate",
		"config lint -f config.yaml":    "kubexm config validate",
		"check -f config.yaml":          "kubexm preflight",
		"precheck":                      "kubexm preflight",
		"get-kubeconfig":                "kubexm kubeconfig",
		"logs":                          "kubexm audit",
		"cache clean":                   "kubexm cache prune",
		"keygen":                        "kubexm keys generate",
		"sbom demo.tar.zst":             "kubexm bundle sbom",
		"help bundle make":              "kubexm bundle build",
		"completion bsh":                "kubexm completion bash",
		// Wrong letters.
		"isntall":                       "kubexm install",
		"instal --bundle demo.tar.zst":  "kubexm install",
		"bundel":                        "kubexm bundle",
		"bundle bulid -f config.yaml":   "kubexm bundle build",
		"bundle verfy demo.tar.zst":     "kubexm bundle verify",
		"config valdiate":               "kubexm config validate",
		"pre-flight -f config.yaml":     "kubexm preflight",
		"-f config.yaml isntall":        "kubexm install",
		"delete clutser -f config.yaml": "kubexm delete cluster",
		"registry puhs":                 "kubexm registry push",
		"plan craete -f config.yaml":    "did you mean create",
		// Flags.
		"bundle build --config config.yaml": "-f",
		"install --archive demo.tar.zst":    "--bundle",
		"install --host m1":                 "-f",
		"delete cluster --host m1":          "--skip-host",
		"delete cluster --force":            "--yes",
		"install --ignore-preflight-errors": "--skip-checks",
		"install --dryrun":                  "--dry-run",
		"install --check":                   "--dry-run",
		"install --insecure":                "--allow-unsigned",
		"bundle verify --public-key a x":    "--key",
		"bundle build --jobs 4":             "--parallel",
		"install -bundle demo.tar.zst":      "--bundle",
		"config init --output-file x":       "--out",
		"bundle build --voulme-size 4GiB":   "--volume-size",
		"registry push --user admin":        "--username",
		"bundle ls --parity 2 x":            "kubexm bundle build",
		"version --debug":                   "--verbose",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, err := ran(t, strings.Fields(line)...)
			if code != exitUsage || out != "" {
				t.Errorf("exit code %d, standard output %q", code, out)
			}
			first, _, _ := strings.Cut(err, "\n")
			_, said, ok := strings.Cut(first, "; ")
			if !ok || !strings.Contains(said, want) {
				t.Errorf("%s\nwant it to name %s", first, want)
			}
		})
	}
}

// TestTypos counts mistakes of a hand, each once.
func TestTypos(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"build", "build", 0}, {"bulid", "build", 1}, {"biuld", "build", 1}, {"buil", "build", 1}, {"buildd", "build", 1}, {"ca", "abc", 3}} {
		if got := typos(c.a, c.b); got != c.want {
			t.Errorf("typos(%s, %s) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestWordsNameCommands: a list of other tools' words belongs to a command that is there.
func TestWordsNameCommands(t *testing.T) {
	a := &app{env: func(string) (string, bool) { return "", false }}
	have, flags := map[string]bool{}, map[string]bool{}
	eachCommand(a.root(), func(cmd *cobra.Command) {
		have[cmd.CommandPath()] = true
		for name := range flagWords() {
			flags[name] = flags[name] || cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil
		}
	})
	for path := range commandWords() {
		if !have[path] {
			t.Errorf("there is no command %s", path)
		}
	}
	for name := range flagWords() {
		if !flags[name] {
			t.Errorf("no command has a flag --%s", name)
		}
	}
}

// TestNoForeignTexts: whatever a command is called without, kubexm says so in its own
// words, and as one document to who asks for one.
func TestNoForeignTexts(t *testing.T) {
	a := &app{env: func(string) (string, bool) { return "", false }}
	var paths []string
	eachCommand(a.root(), func(cmd *cobra.Command) {
		if cmd.HasParent() && !strings.HasPrefix(cmd.CommandPath(), "kubexm completion") {
			paths = append(paths, strings.TrimPrefix(cmd.CommandPath(), "kubexm "))
		}
	})
	foreign := []string{"arg(s)", "flag(s)", "flags in the group", "Error:", "unknown shorthand"}
	t.Chdir(t.TempDir())
	for _, path := range paths {
		for name, more := range map[string][]string{"none": nil, "bad flag": {"--nosuch"}, "bad shorthand": {"-Z"}, "too many": {"a", "b", "c", "d"}, "bad file": {"-f", "absent.yaml", "--bundle", "absent.tar.zst"}} {
			if path == "man" && name == "none" || path == "registry serve" && name == "bad file" {
				more = append(more, "--nosuch")
			}
			args := append(strings.Fields(path), more...)
			code, _, stderr := ranFor(t, args)
			for _, text := range foreign {
				if strings.Contains(stderr, text) {
					t.Errorf("%s: %s says %q:\n%s", path, name, text, stderr)
				}
			}
			if name == "bad flag" && code != exitUsage {
				t.Errorf("%s --nosuch: exit code %d", path, code)
			}
			code, out, _ := ranFor(t, append(args, "-o", "json"))
			if code == exitDone {
				continue
			}
			d := json.NewDecoder(strings.NewReader(out))
			n := 0
			for ; d.More(); n++ {
				var v any
				if err := d.Decode(&v); err != nil {
					t.Fatalf("%s: %s: %v in\n%s", path, name, err, out)
				}
			}
			if n == 0 || n > 1 && !strings.Contains(out, `"type":"summary"`) {
				t.Errorf("%s: %s: %d documents:\n%s", path, name, n, out)
			}
		}
	}
}

func ranFor(t *testing.T, args []string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(string) (string, bool) { return "", false }}
	return a.run(ctx, args), out.String(), err.String()
}
