package ssh_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// refusedKey wants the host key to be refused.
func refusedKey(t *testing.T, err error) *connector.HostKeyError {
	t.Helper()
	var e *connector.HostKeyError
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want a HostKeyError", err)
	}
	if !strings.HasPrefix(err.Error(), "host key of ") && !strings.HasPrefix(err.Error(), "jump host of ") {
		t.Errorf("error begins with words of others: %v", err)
	}
	return e
}

func TestStrictUnknown(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	dir := t.TempDir()
	for name, files := range map[string][]string{
		"no files": nil, "file that is not there": {filepath.Join(dir, "none")}, "empty file": {filepath.Join(dir, "empty")}, "other hosts": {filepath.Join(dir, "others")},
	} {
		write(t, filepath.Join(dir, "empty"), "")
		write(t, filepath.Join(dir, "others"), knownhosts.Line([]string{"192.0.2.1"}, s.HostKey())+"\n")
		for _, policy := range []ssh.Policy{"", ssh.Strict} {
			cfg := config(t, s)
			cfg.KnownHosts, cfg.Policy, cfg.Record = files, policy, filepath.Join(dir, "record")
			e := refusedKey(t, open(t, cfg).Connect(t.Context()))
			if e.Fingerprint != fingerprint(s.HostKey()) || len(e.Known) != 0 || !strings.Contains(e.Error(), "is not known: ssh-ed25519 "+e.Fingerprint) {
				t.Errorf("%s: %v", name, e)
			}
			if !strings.Contains(e.Advice(), "add this line to "+cfg.Record) || !strings.Contains(e.Advice(), "ssh_host_ed25519_key.pub") {
				t.Errorf("%s: advice is %s", name, e.Advice())
			}
			if _, err := os.Stat(cfg.Record); err == nil {
				t.Errorf("%s: something was recorded", name)
			}
			// Who does as the advice says gets in.
			cfg.KnownHosts = []string{filepath.Join(t.TempDir(), "known_hosts")}
			write(t, cfg.KnownHosts[0], e.Line+"\n")
			says(t, open(t, cfg), "echo in", "in")
		}
	}
	if total, _ := s.Sessions(); total != 8 {
		t.Errorf("%d sessions, want 8: a refused host key must end the login", total)
	}
}

func TestAcceptNew(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	log, text := logger()
	record := filepath.Join(t.TempDir(), "cluster", "known_hosts")
	cfg.KnownHosts, cfg.Policy, cfg.Record, cfg.Log = nil, ssh.AcceptNew, record, log
	says(t, open(t, cfg), "echo in", "in")
	if !strings.Contains(text.String(), fingerprint(s.HostKey())) {
		t.Errorf("the log does not show the fingerprint: %s", text)
	}
	if st, err := os.Stat(record); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("record is %v, %v", st, err)
	}
	first, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	says(t, open(t, cfg), "echo again", "again")
	cfg.Policy = ssh.Strict
	says(t, open(t, cfg), "echo strict", "strict")
	if again, _ := os.ReadFile(record); !bytes.Equal(first, again) {
		t.Errorf("a known key was recorded again:\n%s", again)
	}

	// Another key of a known host is refused, and not recorded.
	s.SetHostKeys(sshtest.Key(t, "ed25519"))
	cfg.Policy = ssh.AcceptNew
	e := refusedKey(t, open(t, cfg).Connect(t.Context()))
	if len(e.Known) != 1 || e.Known[0] != record+":1" || !strings.Contains(e.Error(), "has changed") || !strings.Contains(e.Advice(), "may be intercepted") {
		t.Errorf("%v; advice: %s", e, e.Advice())
	}
	if again, _ := os.ReadFile(record); !bytes.Equal(first, again) {
		t.Errorf("a changed key was recorded:\n%s", again)
	}
	// Who does as the advice says, to the letter, gets in.
	_, command, _ := strings.Cut(e.Advice(), "remove the old line: `")
	command, _, _ = strings.Cut(command, "`")
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil || !strings.HasPrefix(command, "sed -i 1d ") {
		t.Fatalf("%s: %v, %s", command, err, out)
	}
	says(t, open(t, cfg), "echo anew", "anew")
}

// TestRemovalOfLines: each file that holds another key of the host is named once.
func TestRemovalOfLines(t *testing.T) {
	e := &connector.HostKeyError{KeyType: "ssh-ed25519", Known: []string{"/a b/known_hosts:3", "/etc/known:7", "/a b/known_hosts:12"}}
	if want := "remove the old lines: `sed -i '3d;12d' '/a b/known_hosts'` and `sed -i 7d /etc/known`;"; !strings.Contains(e.Advice(), want) {
		t.Errorf("%s\nwant %s", e.Advice(), want)
	}
}

// TestAcceptNewSideBySide: many hosts of one cluster write to one file.
func TestAcceptNewSideBySide(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "known_hosts")
	write(t, record, "# a comment without an end of line")
	var wg sync.WaitGroup
	var servers []*sshtest.Server
	for range 6 {
		s := sshtest.Start(t, sshtest.Config{Password: "secret"})
		servers = append(servers, s)
		cfg := config(t, s)
		cfg.KnownHosts, cfg.Policy, cfg.Record = nil, ssh.AcceptNew, record
		c := open(t, cfg)
		wg.Go(func() {
			if err := c.Connect(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range servers {
		cfg := config(t, s)
		cfg.KnownHosts = []string{record}
		if err := open(t, cfg).Connect(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	ed, ec, rsa := sshtest.Key(t, "ed25519"), sshtest.Key(t, "ecdsa"), sshtest.Key(t, "rsa")
	s := sshtest.Start(t, sshtest.Config{Password: "secret", HostKeys: []xssh.Signer{ed, ec, rsa}})
	other := sshtest.Key(t, "ed25519").PublicKey()
	line := func(k xssh.PublicKey) string { return strings.TrimSpace(string(xssh.MarshalAuthorizedKey(k))) }
	for name, pin := range map[string]string{
		"ed25519 key": line(ed.PublicKey()), "rsa key": line(rsa.PublicKey()), "key with a comment": line(ec.PublicKey()) + " root@host",
		"ed25519 fingerprint": fingerprint(ed.PublicKey()), "ecdsa fingerprint": fingerprint(ec.PublicKey()), "rsa fingerprint": fingerprint(rsa.PublicKey()),
	} {
		cfg := config(t, s)
		cfg.KnownHosts, cfg.Policy, cfg.HostKey = nil, ssh.Pinned, pin
		if err := open(t, cfg).Connect(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, pin := range map[string]string{"other key": line(other), "other fingerprint": fingerprint(other)} {
		cfg := config(t, s) // that known_hosts has the key does not matter
		cfg.Policy, cfg.HostKey = ssh.Pinned, pin
		e := refusedKey(t, open(t, cfg).Connect(t.Context()))
		if !e.Pinned || !strings.Contains(e.Error(), pin) || !strings.Contains(e.Advice(), "set hostKey") {
			t.Errorf("%s: %v; advice: %s", name, e, e.Advice())
		}
	}
	for _, pin := range []string{"", "SHA256", "MD5:00:11", "ssh-ed25519", "nonsense AAAA"} {
		cfg := config(t, s)
		cfg.Policy, cfg.HostKey = ssh.Pinned, pin
		var e *connector.KeyError
		if err := open(t, cfg).Connect(t.Context()); !errors.As(err, &e) {
			t.Errorf("pin %q: %v", pin, err)
		}
	}
	cfg := config(t, s)
	cfg.Policy = "insecure"
	if err := open(t, cfg).Connect(t.Context()); err == nil {
		t.Error("a policy that does not exist was taken")
	}
}

// TestKnownKindIsAskedFor: a host has keys of several kinds; the one that is
// known is asked for, whatever the server would rather show.
func TestKnownKindIsAskedFor(t *testing.T) {
	t.Parallel()
	ed, ec, rsa := sshtest.Key(t, "ed25519"), sshtest.Key(t, "ecdsa"), sshtest.Key(t, "rsa")
	s := sshtest.Start(t, sshtest.Config{Password: "secret", HostKeys: []xssh.Signer{ed, ec, rsa}})
	for name, k := range map[string]xssh.Signer{"ed25519": ed, "ecdsa": ec, "rsa": rsa} {
		for form, line := range map[string]string{
			"plain":  knownhosts.Line([]string{s.Addr}, k.PublicKey()),
			"hashed": knownhosts.HashHostname(knownhosts.Normalize(s.Addr)) + strings.TrimPrefix(knownhosts.Line([]string{s.Addr}, k.PublicKey()), knownhosts.Normalize(s.Addr)),
			"list":   knownhosts.Line([]string{"192.0.2.7", s.Addr}, k.PublicKey()),
		} {
			cfg := config(t, s)
			write(t, cfg.KnownHosts[0], line+"\n")
			if err := open(t, cfg).Connect(t.Context()); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
	// The known kind is gone from the host: that is a changed key.
	s.SetHostKeys(ed)
	cfg := config(t, s)
	write(t, cfg.KnownHosts[0], knownhosts.Line([]string{s.Addr}, rsa.PublicKey())+"\n")
	e := refusedKey(t, open(t, cfg).Connect(t.Context()))
	if len(e.Known) != 1 || e.Fingerprint != fingerprint(ed.PublicKey()) {
		t.Errorf("%v", e)
	}
}

func TestRevokedAndBroken(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	line := knownhosts.Line([]string{s.Addr}, s.HostKey())
	write(t, cfg.KnownHosts[0], line+"\n@revoked * "+line[strings.Index(line, " ")+1:]+"\n")
	e := refusedKey(t, open(t, cfg).Connect(t.Context()))
	if !e.Revoked || !strings.Contains(e.Error(), "revoked") {
		t.Errorf("%v", e)
	}
	for _, text := range []string{"[127.0.0.1]:1 ssh-ed25519 AAAA\n", "x ssh-ed25519 !!!\n", "@unknown x ssh-rsa AAAA\n"} {
		write(t, cfg.KnownHosts[0], text)
		var bad *connector.KeyError
		if err := open(t, cfg).Connect(t.Context()); !errors.As(err, &bad) || !strings.Contains(bad.Error(), cfg.KnownHosts[0]) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCertificateAuthority(t *testing.T) {
	t.Parallel()
	ca, host := sshtest.Key(t, "ed25519"), sshtest.Key(t, "ecdsa")
	sign := func(principal string) xssh.Signer {
		cert := &xssh.Certificate{
			Key: host.PublicKey(), CertType: xssh.HostCert, ValidPrincipals: []string{principal}, ValidBefore: xssh.CertTimeInfinity,
		}
		if err := cert.SignCert(rand.Reader, ca); err != nil {
			t.Fatal(err)
		}
		s, err := xssh.NewCertSigner(cert, host)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := sshtest.Start(t, sshtest.Config{Password: "secret", HostKeys: []xssh.Signer{sign("127.0.0.1")}})
	cfg := config(t, s)
	write(t, cfg.KnownHosts[0], "@cert-authority "+knownhosts.Line([]string{s.Addr}, ca.PublicKey())+"\n")
	says(t, open(t, cfg), "echo in", "in")
	s.SetHostKeys(sign("192.0.2.9"))
	if err := open(t, cfg).Connect(t.Context()); err == nil {
		t.Error("a certificate of another host was taken")
	}
}

// FuzzKnownHosts: whatever a known_hosts file holds, a host is let in only when
// the file has a line of its name with its key.
func FuzzKnownHosts(f *testing.F) {
	key := sshtest.Key(f, "ed25519").PublicKey()
	other := sshtest.Key(f, "ed25519").PublicKey()
	name, line := "192.0.2.11:2222", ""
	line = knownhosts.Line([]string{name}, key)
	f.Add(line+"\n", false)
	f.Add(knownhosts.Line([]string{name}, other)+"\n", false)
	f.Add("@revoked "+line, false)
	f.Add("# comment\n\n"+line+" comment\n", true)
	f.Add("*"+line[strings.Index(line, " "):], true)
	f.Add("!"+line, true)
	f.Add("|1|AAAA|BBBB"+line[strings.Index(line, " "):], false)
	f.Fuzz(func(t *testing.T, text string, acceptNew bool) {
		dir := t.TempDir()
		file, record := filepath.Join(dir, "known"), filepath.Join(dir, "record")
		write(t, file, text)
		policy := ssh.Strict
		if acceptNew {
			policy = ssh.AcceptNew
		}
		cfg := ssh.Config{Address: "192.0.2.11", Port: 2222, Policy: policy, KnownHosts: []string{file}, Record: record}
		err := ssh.CheckHostKey(cfg, key)
		_, statErr := os.Stat(record)
		recorded := statErr == nil
		encoded := strings.Fields(line)[2]
		switch {
		case err == nil && !acceptNew && !strings.Contains(text, encoded):
			t.Fatalf("let in by %q, which does not hold the key", text)
		case recorded && !acceptNew:
			t.Fatal("strict recorded a key")
		case err != nil && recorded:
			t.Fatalf("refused (%v) and recorded", err)
		case recorded && ssh.CheckHostKey(ssh.Config{Address: "192.0.2.11", Port: 2222, KnownHosts: []string{record}}, key) != nil:
			t.Fatal("what was recorded does not let in")
		}
	})
}
