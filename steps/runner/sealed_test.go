package runner_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
)

// told is a Conn that records the arguments of a comparison.
type told struct {
	connector.Conn
	known []string
	lie   []byte // its answer to a comparison, if any
}

func (w *told) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if c.Verb != connector.VerbCompare {
		return w.Conn.Exec(ctx, c)
	}
	w.known = append(w.known, c.Args()[1])
	if w.lie != nil {
		return connector.Result{Stdout: w.lie}, nil
	}
	return w.Conn.Exec(ctx, c)
}

func newUpload(path, text string) runner.Upload {
	sum := sha256.Sum256([]byte(text))
	return runner.Upload{Path: path, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

// A file that was hashed when it was sealed is not hashed again by the check after the
// change. Later changes of the file are still detected.
func TestSealedIsKnownAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		meddle  func(path string) error
		pending bool
	}{
		{"nothing", func(string) error { return nil }, false},
		{"the same bytes anew", func(p string) error { return os.WriteFile(p, []byte("content"), 0o755) }, false},
		{"other bytes in place", func(p string) error { return os.WriteFile(p, []byte("CONTENT"), 0o755) }, true},
		{"other bytes under the old time", func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			if err := os.WriteFile(p, []byte("CONTENT"), 0o755); err != nil {
				return err
			}
			return os.Chtimes(p, info.ModTime(), info.ModTime())
		}, true},
		{"another file of that size and time", func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			other := p + "2"
			if err := os.WriteFile(other, []byte("CONTENT"), 0o755); err != nil {
				return err
			}
			if err := os.Chtimes(other, info.ModTime(), info.ModTime()); err != nil {
				return err
			}
			return os.Rename(other, p)
		}, true},
		{"gone", os.Remove, true},
		{"a link to it", func(p string) error {
			if err := os.Rename(p, p+"2"); err != nil {
				return err
			}
			return os.Symlink(p+"2", p)
		}, true},
		{"other permissions", func(p string) error { return os.Chmod(p, 0o600) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &told{Conn: local.New(local.Config{})}
			r := runner.New(w, runner.Options{AsLogin: true})
			u := newUpload(filepath.Join(t.TempDir(), "tool"), "content")
			if _, err := r.Upload(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if err := test.meddle(u.Path); err != nil {
				t.Fatal(err)
			}
			there, err := r.Uploaded(t.Context(), u)
			if err != nil || there == test.pending {
				t.Errorf("there %t, %v", there, err)
			}
			if len(w.known) != 2 || w.known[0] != "7" || !strings.HasPrefix(w.known[1], "7:") {
				t.Errorf("the host was told %q", w.known)
			}
			// Other bytes of that place, and another run, know nothing of it.
			next := newUpload(u.Path, "CONTENT")
			if _, err := r.Uploaded(t.Context(), next); err != nil || w.known[2] != "7" {
				t.Errorf("%q, %v", w.known, err)
			}
			if _, err := runner.New(w, runner.Options{AsLogin: true}).Uploaded(t.Context(), u); err != nil || w.known[3] != "7" {
				t.Errorf("%q, %v", w.known, err)
			}
		})
	}
}

// A host that reports an unknown file as unchanged is not trusted.
func TestSealedIsNotTakenOnTrust(t *testing.T) {
	w := &told{Conn: local.New(local.Config{})}
	r := runner.New(w, runner.Options{AsLogin: true})
	u := newUpload(filepath.Join(t.TempDir(), "tool"), "content")
	w.lie = bytes.Join([][]byte{[]byte("81ed 7 0 0 1700000000"), []byte("root"), []byte("root"), []byte(u.Path), []byte("="), nil}, []byte{0})
	if there, err := r.Uploaded(t.Context(), u); err != nil || there {
		t.Errorf("there %t, %v", there, err)
	}
}
