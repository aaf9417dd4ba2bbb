package installer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
)

// TestWorkdirThatOthersMayChangeIsRefused, and what to type is said.
func TestWorkdirThatOthersMayChangeIsRefused(t *testing.T) {
	t.Parallel()
	const other = 4242
	for name, c := range map[string]struct {
		change func(t *testing.T, at func(...string) string)
		says   string
		advice string
		root   bool // takes root to bring about
	}{
		"its owner's alone": {func(*testing.T, func(...string) string) {}, "", "", false},
		"others may read": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chmod(at(), 0o755))
		}, "", "", false},
		"the group may write": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chmod(at(), 0o770))
		}, ".kubexm (mode 0770)", "chmod go-w ", false},
		"everybody may write the cluster's": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chmod(at("demo"), 0o702))
		}, "demo (mode 0702)", "chmod go-w ", false},
		"everybody may write one of its folders": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chmod(at("demo", "applied"), 0o777))
		}, "applied (mode 0777)", "chmod go-w ", false},
		"a link in its place": {func(t *testing.T, at func(...string) string) {
			must(t, os.Rename(at(), at()+"2"))
			must(t, os.Symlink(at()+"2", at()))
		}, ".kubexm is a symbolic link", "--workdir", false},
		"a link in the place of the cluster's": {func(t *testing.T, at func(...string) string) {
			must(t, os.Rename(at("demo"), at("other")))
			must(t, os.Symlink("other", at("demo")))
		}, "demo is a symbolic link", "--workdir", false},
		"a link in the place of a folder": {func(t *testing.T, at func(...string) string) {
			must(t, os.Remove(at("demo", "certs")))
			must(t, os.Symlink(t.TempDir(), at("demo", "certs")))
		}, "certs is a symbolic link", "--workdir", false},
		"a link in the place of a file": {func(t *testing.T, at func(...string) string) {
			must(t, os.Symlink("/etc/passwd", at("demo", "kubeconfig")))
		}, "kubeconfig is a symbolic link", "--workdir", false},
		"a file in its place": {func(t *testing.T, at func(...string) string) {
			must(t, os.RemoveAll(at()))
			must(t, os.WriteFile(at(), nil, 0o600))
		}, ".kubexm is not a folder", "", false},
		"another's": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chown(at(), other, -1))
		}, ".kubexm belongs to user 4242", "chown 0 ", true},
		"another's folder in it": {func(t *testing.T, at func(...string) string) {
			must(t, os.Chown(at("demo", "runs"), other, -1))
		}, "runs belongs to user 4242", "chown 0 ", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			base := t.TempDir()
			if _, err := NewWorkdir(base, "demo"); err != nil {
				t.Fatal(err)
			}
			c.change(t, func(parts ...string) string {
				return filepath.Join(append([]string{base, ".kubexm"}, parts...)...)
			})
			for what, err := range map[string]error{"check": CheckWorkdir(base, "demo"), "use": func() error { _, err := NewWorkdir(base, "demo"); return err }()} {
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s: %v, want %q", what, err, c.says)
				}
				if advice := strings.Join(steps.Advice(err), ""); !strings.Contains(advice, c.advice) {
					t.Errorf("%s: advice %q, want %q", what, advice, c.advice)
				}
			}
		})
	}
	if err := CheckWorkdir(t.TempDir(), "demo"); err != nil {
		t.Errorf("where there is none: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
