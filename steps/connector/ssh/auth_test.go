package ssh_test

import (
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pemKey gives a private key as files hold it, encrypted where there is a passphrase.
func pemKey(t *testing.T, kind, passphrase string) ([]byte, xssh.PublicKey) {
	t.Helper()
	key := sshtest.PrivateKey(t, kind)
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = xssh.MarshalPrivateKey(key, "test")
	} else {
		block, err = xssh.MarshalPrivateKeyWithPassphrase(key, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := xssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), signer.PublicKey()
}

// serveAgent gives the socket of an agent that holds new keys, and the keys.
func serveAgent(t *testing.T, kinds ...string) (string, []xssh.PublicKey) {
	t.Helper()
	ring := agent.NewKeyring()
	var keys []xssh.PublicKey
	for _, kind := range kinds {
		if err := ring.Add(agent.AddedKey{PrivateKey: sshtest.PrivateKey(t, kind)}); err != nil {
			t.Fatal(err)
		}
	}
	signers, err := ring.Signers()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signers {
		keys = append(keys, s.PublicKey())
	}
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		os.RemoveAll(dir)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = agent.ServeAgent(ring, c)
			}()
		}
	}()
	return l.Addr().String(), keys
}

func TestLogins(t *testing.T) {
	t.Parallel()
	plain, plainPub := pemKey(t, "ed25519", "")
	ec, ecPub := pemKey(t, "ecdsa", "")
	rsa, rsaPub := pemKey(t, "rsa", "")
	locked, lockedPub := pemKey(t, "ed25519", "open sesame")
	socket, held := serveAgent(t, "ed25519", "rsa")
	for _, c := range []struct {
		name   string
		server sshtest.Config
		client ssh.Config
	}{
		{"password", sshtest.Config{Password: "secret"}, ssh.Config{Password: "secret"}},
		{"keyboard-interactive", sshtest.Config{Interactive: "secret"}, ssh.Config{Password: "secret"}},
		{"ed25519 key", sshtest.Config{Keys: []xssh.PublicKey{plainPub}}, ssh.Config{Key: plain}},
		{"ecdsa key", sshtest.Config{Keys: []xssh.PublicKey{ecPub}}, ssh.Config{Key: ec}},
		{"rsa key", sshtest.Config{Keys: []xssh.PublicKey{rsaPub}}, ssh.Config{Key: rsa}},
		{"encrypted key", sshtest.Config{Keys: []xssh.PublicKey{lockedPub}}, ssh.Config{Key: locked, Passphrase: "open sesame"}},
		{"agent", sshtest.Config{Keys: held[1:]}, ssh.Config{AgentSocket: socket}},
		{"key before agent", sshtest.Config{Keys: []xssh.PublicKey{plainPub}}, ssh.Config{Key: plain, AgentSocket: socket}},
		{"password after a key that is not known there", sshtest.Config{Password: "secret", Keys: []xssh.PublicKey{ecPub}}, ssh.Config{Key: plain, Password: "secret"}},
		{"no agent there, but a password", sshtest.Config{Password: "secret"}, ssh.Config{AgentSocket: "/nonexistent/agent", Password: "secret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, c.server)
			cfg := config(t, s)
			cfg.Password, cfg.Key, cfg.Passphrase, cfg.AgentSocket = c.client.Password, c.client.Key, c.client.Passphrase, c.client.AgentSocket
			says(t, open(t, cfg), "echo hello", "hello")
		})
	}
}

func TestLoginsRefused(t *testing.T) {
	t.Parallel()
	plain, plainPub := pemKey(t, "ed25519", "")
	locked, _ := pemKey(t, "ed25519", "open sesame")
	_, otherPub := pemKey(t, "ed25519", "")
	socket, held := serveAgent(t, "ed25519")
	server := sshtest.Start(t, sshtest.Config{Password: "right", Interactive: "right", Keys: []xssh.PublicKey{otherPub}})
	for _, c := range []struct {
		name   string
		client ssh.Config
		tried  []string // of an AuthError
		says   string   // the error has this
		advice string
	}{
		{"nothing to try", ssh.Config{}, nil, "no key and no password", "set password, privateKeyPath or agent"},
		{"wrong password", ssh.Config{Password: "wr0ng"}, []string{"password", "keyboard-interactive"}, "refused; tried password", "check user, password"},
		{"key", ssh.Config{Key: plain, KeyPath: "~/.ssh/id"}, []string{"key " + fingerprint(plainPub) + " (~/.ssh/id)"}, "refused", "authorized_keys"},
		{"agent", ssh.Config{AgentSocket: socket}, []string{"key " + fingerprint(held[0]) + " (agent)"}, "refused", "authorized_keys"},
		{"encrypted key without passphrase", ssh.Config{Key: locked, KeyPath: "/k"}, nil, "private key /k: the key is encrypted", "set passphrase"},
		{"wrong passphrase", ssh.Config{Key: locked, KeyPath: "/k", Passphrase: "wr0ng"}, nil, "the passphrase does not decrypt the key", "check passphrase"},
		{"no key", ssh.Config{Key: []byte("ssh-ed25519 AAAA"), KeyPath: "/k.pub"}, nil, "not a private key", "not to the .pub file"},
		{"no agent", ssh.Config{AgentSocket: "/nonexistent/agent"}, nil, "agent does not answer", "SSH_AUTH_SOCK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, server)
			cfg.User = "admin"
			cfg.Password, cfg.Key, cfg.KeyPath, cfg.Passphrase, cfg.AgentSocket = c.client.Password, c.client.Key, c.client.KeyPath, c.client.Passphrase, c.client.AgentSocket
			_, err := open(t, cfg).Exec(t.Context(), connector.Cmd{Argv: []string{"true"}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error is %v, want %q in it", err, c.says)
			}
			var advised connector.Advised
			if !errors.As(err, &advised) || !strings.Contains(advised.Advice(), c.advice) {
				t.Errorf("advice is %q, want %q in it", advised.Advice(), c.advice)
			}
			var auth *connector.AuthError
			if errors.As(err, &auth) && !slices.Equal(auth.Tried, c.tried) || auth == nil && c.tried != nil {
				t.Errorf("tried %q, want %q", auth.Tried, c.tried)
			}
			if strings.Contains(err.Error()+advised.Advice(), "wr0ng") {
				t.Errorf("the secret is shown: %v", err)
			}
		})
	}
}

// TestTooManyKeys: a server that ends the login after so many keys is told apart
// from one that cannot be spoken to.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	_, other := pemKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Config{Keys: []xssh.PublicKey{other}})
	socket, _ := serveAgent(t, slices.Repeat([]string{"ed25519"}, 9)...)
	cfg := config(t, s)
	cfg.Password, cfg.AgentSocket = "", socket
	err := open(t, cfg).Connect(t.Context())
	var auth *connector.AuthError
	if !errors.As(err, &auth) || len(auth.Tried) != 9 {
		t.Fatalf("error is %v", err)
	}
}

// TestWrongPasswordOnce: a server that asks again is not given the same answer
// again: each wrong one counts towards locking the account.
func TestWrongPasswordOnce(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Interactive: "right"})
	cfg := config(t, s)
	cfg.Password = "wrong"
	var auth *connector.AuthError
	if err := open(t, cfg).Connect(t.Context()); !errors.As(err, &auth) {
		t.Fatalf("error is %v", err)
	}
	if n := s.Asked(); n != 2 { // the second question got no answer
		t.Errorf("asked %d times, want 2", n)
	}
}

func keys(ks ...xssh.PublicKey) []xssh.PublicKey { return ks }
