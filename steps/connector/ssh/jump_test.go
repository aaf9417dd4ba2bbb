package ssh_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

func TestJump(t *testing.T) {
	t.Parallel()
	first := sshtest.Start(t, sshtest.Config{Password: "secret"})
	second := sshtest.Start(t, sshtest.Config{Password: "secret"})
	target := sshtest.Start(t, sshtest.Config{Password: "secret"})
	outer := open(t, config(t, first))
	cfg := config(t, second)
	cfg.Jump = outer
	inner := open(t, cfg)
	cfg = config(t, target)
	cfg.Jump = inner
	c := open(t, cfg)
	says(t, c, "echo here", "here")
	says(t, c, "echo there", "there")
	for name, s := range map[string]*sshtest.Server{"first": first, "second": second, "target": target} {
		if n := s.Connections(); n != 1 {
			t.Errorf("%s: %d connections, want 1", name, n)
		}
	}
	if total, _ := first.Sessions(); total != 0 {
		t.Errorf("%d commands ran on the jump host", total)
	}
	// The way breaks and is made again, all of it.
	first.Drop()
	eventually(t, "the way to break", func() bool {
		res, err := c.Exec(t.Context(), sh("echo again"))
		return err == nil && string(res.Stdout) == "again\n"
	})
}

func TestJumpFails(t *testing.T) {
	t.Parallel()
	target := sshtest.Start(t, sshtest.Config{Password: "secret"})
	through := func(t *testing.T, jump ssh.Config, target ssh.Config) error {
		t.Helper()
		target.Jump = open(t, jump)
		err := open(t, target).Connect(t.Context())
		var j *connector.JumpError
		if err != nil && !errors.As(err, &j) {
			t.Errorf("error is %v, want a JumpError", err)
		}
		return err
	}
	t.Run("host key", func(t *testing.T) {
		jump := sshtest.Start(t, sshtest.Config{Password: "secret"})
		cfg := config(t, jump)
		cfg.KnownHosts = nil
		e := refusedKey(t, through(t, cfg, config(t, target)))
		if e.Addr != jump.Addr {
			t.Errorf("refused was %s", e.Addr)
		}
	})
	t.Run("password", func(t *testing.T) {
		jump := sshtest.Start(t, sshtest.Config{Password: "other"})
		err := through(t, config(t, jump), config(t, target))
		var auth *connector.AuthError
		if !errors.As(err, &auth) || auth.Addr != jump.Addr || !strings.HasPrefix(err.Error(), "jump host of "+target.Addr) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("forwarding", func(t *testing.T) {
		jump := sshtest.Start(t, sshtest.Config{Password: "secret", NoForward: true})
		err := through(t, config(t, jump), config(t, target))
		var j *connector.JumpError
		if !errors.As(err, &j) || !strings.Contains(j.Advice(), "AllowTcpForwarding") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("nobody behind it", func(t *testing.T) {
		jump := sshtest.Start(t, sshtest.Config{Password: "secret"})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(t, target)
		cfg.Port = l.Addr().(*net.TCPAddr).Port
		l.Close()
		err = through(t, config(t, jump), cfg)
		if err == nil || !strings.Contains(err.Error(), "through jump host "+jump.Addr+": connection refused") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestForward(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := open(t, config(t, s))
	var f connector.Forwarder = c

	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go serveEcho(echo)
	out, err := f.Dial(t.Context(), "tcp", echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, out)

	back, err := f.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go serveEcho(back)
	in, err := net.Dial("tcp", back.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, in)
	if err := back.Close(); err != nil {
		t.Error(err)
	}

	closed := echo.Addr().String()
	echo.Close()
	var e *connector.DialError
	if _, err := f.Dial(t.Context(), "tcp", closed); !errors.As(err, &e) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("to nobody: %v", err)
	}
	deaf := sshtest.Start(t, sshtest.Config{Password: "secret", NoForward: true})
	d := open(t, config(t, deaf))
	if _, err := d.Dial(t.Context(), "tcp", closed); !errors.As(err, &e) || !strings.Contains(e.Advice(), "AllowTcpForwarding") {
		t.Errorf("dial where it is forbidden: %v", err)
	}
	if _, err := d.Listen(t.Context(), "tcp", "127.0.0.1:0"); !errors.As(err, &e) || !strings.Contains(e.Advice(), "AllowTcpForwarding") {
		t.Errorf("listen where it is forbidden: %v", err)
	}
}

func serveEcho(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			c.Close()
		}()
	}
}

func exchange(t *testing.T, c net.Conn) {
	t.Helper()
	defer c.Close()
	text := strings.Repeat("there and back ", 5000)
	go func() { _, _ = io.WriteString(c, text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("%d bytes came back: %v", len(got), err)
	}
}

// TestJumpHostsKeys: a jump host is trusted by its own policy, strict where none is
// written, whatever the host behind it allows.
func TestJumpHostsKeys(t *testing.T) {
	t.Parallel()
	jump, target := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	for name, c := range map[string]struct {
		login  manifest.Login
		known  xssh.PublicKey // in the cluster's known_hosts
		refuse string
	}{
		"strict by default": {manifest.Login{}, nil, "is not known"},
		"strict":            {manifest.Login{HostKeyPolicy: "strict"}, jump.HostKey(), ""},
		"changed":           {manifest.Login{HostKeyPolicy: "accept-new"}, target.HostKey(), "has changed"},
		"accept-new":        {manifest.Login{HostKeyPolicy: "accept-new"}, nil, ""},
		"pinned":            {manifest.Login{HostKeyPolicy: "pinned", HostKey: fingerprint(jump.HostKey())}, nil, ""},
		"pinned to another": {manifest.Login{HostKeyPolicy: "pinned", HostKey: fingerprint(target.HostKey())}, nil, "is not the pinned one"},
	} {
		record := filepath.Join(t.TempDir(), "known_hosts")
		if c.known != nil {
			write(t, record, knownhosts.Line([]string{jump.Addr}, c.known)+"\n")
		}
		d := ssh.NewDialer(ssh.Env{LookupEnv: func(string) (string, bool) { return "", false }, ReadFile: os.ReadFile, Record: record})
		c.login.Port, c.login.Password = jump.Port, manifest.NewSecret("secret")
		behind := manifest.Login{Port: target.Port, Password: manifest.NewSecret("secret"), HostKeyPolicy: "accept-new"}
		conn, err := d.Host(manifest.Host{Name: "a", Address: target.Host, SSH: manifest.SSH{Login: behind, JumpHost: &manifest.JumpHost{Address: jump.Host, Login: c.login}}})
		if err != nil {
			t.Fatal(err)
		}
		err = conn.Connect(t.Context())
		if c.refuse == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.refuse != "" {
			if e := refusedKey(t, err); e.Addr != jump.Addr || !strings.Contains(e.Error(), c.refuse) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := errors.Join(conn.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestDialer(t *testing.T) {
	t.Parallel()
	jump := sshtest.Start(t, sshtest.Config{Password: "jump-secret"})
	key, pub := pemKey(t, "ed25519", "open sesame")
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".ssh/id"), string(key))
	a := sshtest.Start(t, sshtest.Config{Keys: keys(pub)})
	b := sshtest.Start(t, sshtest.Config{Password: "b-secret"})
	d := ssh.NewDialer(ssh.Env{
		LookupEnv: func(n string) (string, bool) { return "b-secret", n == "B_PASSWORD" },
		ReadFile:  os.ReadFile, Home: home, Record: filepath.Join(home, "known_hosts"),
	})
	via := &manifest.JumpHost{Address: jump.Host, Login: manifest.Login{Port: jump.Port, Password: manifest.NewSecret("jump-secret"), HostKeyPolicy: "accept-new"}}
	host := func(name string, s *sshtest.Server, l manifest.Login) manifest.Host {
		l.Port, l.HostKeyPolicy = s.Port, "accept-new"
		l.ConnectionTimeout = manifest.Duration(10 * time.Second)
		return manifest.Host{Name: name, Address: s.Host, SSH: manifest.SSH{Login: l, JumpHost: via}}
	}
	for _, h := range []manifest.Host{
		host("a", a, manifest.Login{PrivateKeyPath: "~/.ssh/id", Passphrase: manifest.NewSecret("open sesame")}),
		host("b", b, manifest.Login{Password: manifest.NewSecret("${env:B_PASSWORD}")}),
	} {
		c, err := d.Host(h)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		says(t, c, "echo "+h.Name, h.Name)
	}
	if n := jump.Connections(); n != 1 {
		t.Errorf("%d connections to the jump host, want one for both", n)
	}
	for name, l := range map[string]manifest.Login{
		"password": {Password: manifest.NewSecret("${env:NOT_SET}")}, "passphrase": {Passphrase: manifest.NewSecret("file:/nonexistent")}, "/nonexistent/key": {PrivateKeyPath: "/nonexistent/key"},
	} {
		if _, err := d.Host(host("c", b, l)); err == nil || !strings.HasPrefix(err.Error(), "host c: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
