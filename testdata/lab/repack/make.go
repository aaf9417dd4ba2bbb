package repack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed *.go *.sh *.spec
var sources embed.FS

// Key changes with everything that decides what Make makes, but for what Debian's
// archives hold.
func Key() (string, error) {
	h := sha256.New()
	entries, err := sources.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := sources.ReadFile(e.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(text), text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// Make makes a host's root in dir, and in dir with .rpms at its end a repository of all rpms, with the
// key that signed it as RPM-GPG-KEY-kubexmlab. It takes minutes, needs root, and
// Debian's archives as this machine is set up for them.
func Make(ctx context.Context, dir string) error {
	debian := dir + ".debian"
	err := all(ctx, debian, dir)
	return errors.Join(err, os.RemoveAll(debian))
}

func all(ctx context.Context, debian, dir string) error {
	if err := run(ctx, "debian.sh", debian); err != nil {
		return err
	}
	if err := Write(debian, filepath.Join(debian, "build")); err != nil {
		return err
	}
	return run(ctx, "build.sh", debian, dir)
}

func run(ctx context.Context, script string, args ...string) error {
	text, err := sources.ReadFile(script)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", "bash", "-s"}, args...)...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %s (%w)", script, strings.Join(lines[max(0, len(lines)-8):], "\n"), err)
	}
	return nil
}
