package runner_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// dropping is a file that calls a function while it is read.
type dropping struct {
	left   int
	middle func()
}

func (d *dropping) Read(b []byte) (int, error) {
	if d.left <= 0 {
		return 0, io.EOF
	}
	if d.left < 1<<20 && d.middle != nil {
		d.middle()
		d.middle = nil
	}
	n := min(len(b), d.left)
	d.left -= n
	return n, nil
}

// TestWireBreaksUnderAnUpload: the host sees the end of the input, as if it were complete.
// The partial content must not replace the file.
func TestWireBreaksUnderAnUpload(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	server := sshtest.Start(t, sshtest.Config{Password: "secret"})
	conn := ssh.New(ssh.Config{
		Address: server.Host, Port: server.Port, Password: "secret", Policy: ssh.AcceptNew, Record: filepath.Join(t.TempDir(), "known_hosts"),
	})
	t.Cleanup(func() { conn.Close() })
	r := runner.New(conn, runner.Options{})
	dir := t.TempDir()
	place := filepath.Join(dir, "tool")
	if err := r.WriteFile(t.Context(), place, []byte("before"), runner.Attr{}); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(make([]byte, size))
	u := runner.Upload{Path: place, Size: size, SHA256: hex.EncodeToString(sum[:])}
	u.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(&dropping{size, server.Drop}), nil
	}
	_, err := r.Upload(t.Context(), u)
	var broken *connector.BrokenError
	if !errors.As(err, &broken) || broken.Verb != connector.VerbPut {
		t.Fatalf("error is %v", err)
	}
	time.Sleep(200 * time.Millisecond) // the host goes on for a moment
	if b, err := os.ReadFile(place); err != nil || string(b) != "before" {
		t.Fatalf("the file holds %d bytes, %v", len(b), err)
	}
	u.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(&dropping{size, nil}), nil }
	if changed, err := r.Upload(t.Context(), u); err != nil || !changed {
		t.Fatalf("again: changed %t, %v", changed, err)
	}
	b, err := os.ReadFile(place)
	if err != nil || !bytes.Equal(b, make([]byte, size)) {
		t.Fatalf("the file holds %d bytes, %v", len(b), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// TestWireBreaksUnderAWrite is the same for a small file, which is written by one command.
func TestWireBreaksUnderAWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := filepath.Join(dir, "conf")
	server := sshtest.Start(t, sshtest.Config{Password: "secret"})
	conn := ssh.New(ssh.Config{
		Address: server.Host, Port: server.Port, Password: "secret", Policy: ssh.AcceptNew, Record: filepath.Join(t.TempDir(), "known_hosts"),
	})
	t.Cleanup(func() { conn.Close() })
	r := runner.New(shortened{conn}, runner.Options{})
	if err := os.WriteFile(place, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFile(t.Context(), place, []byte("a new text"), runner.Attr{}); !errors.Is(err, runner.ErrShort) {
		t.Fatalf("error is %v", err)
	}
	if b, err := os.ReadFile(place); err != nil || string(b) != "before" {
		t.Fatalf("the file holds %q, %v", b, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// shortened truncates the input of commands, as a broken connection does.
type shortened struct{ connector.Conn }

func (s shortened) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if c.Stdin != nil {
		c.Stdin = io.LimitReader(c.Stdin, 5)
	}
	return s.Conn.Exec(ctx, c)
}
