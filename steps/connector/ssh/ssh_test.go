package ssh_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// config gives what reaches a server by password, with its host key known.
func config(t *testing.T, s *sshtest.Server) ssh.Config {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known_hosts")
	write(t, known, knownhosts.Line([]string{s.Addr}, s.HostKey())+"\n")
	return ssh.Config{Address: s.Host, Port: s.Port, Password: "secret", KnownHosts: []string{known}, Timeout: 10 * time.Second}
}

func open(t *testing.T, cfg ssh.Config) *ssh.Conn {
	t.Helper()
	c := ssh.New(cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// says runs a shell command and wants this output.
func says(t *testing.T, c connector.Conn, script, want string) {
	t.Helper()
	res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"/bin/sh", "-c", script}})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	if got := strings.TrimSpace(string(res.Stdout)); res.Exit != 0 || got != want {
		t.Fatalf("%s: exit %d, %q %q; want %q", script, res.Exit, got, res.Stderr, want)
	}
}

// logger gives a logger and what it wrote.
func logger() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}

func fingerprint(k xssh.PublicKey) string { return xssh.FingerprintSHA256(k) }
