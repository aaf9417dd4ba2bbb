package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/mensylisir/kubexm/steps/connector"
)

// login is one login attempt: the credentials, and the methods tried so far.
type login struct {
	cfg     Config
	signers []ssh.Signer
	names   []string // names of the signers in errors
	agent   net.Conn
	watch   func() bool // stops closing agent at the end of the login's context

	began   bool // the server has received the user name: later failures concern the login
	tried   []string
	accepts []string
	err     error // of the local keys
}

// newLogin parses the key and queries the agent. The connection to the agent stays open
// until the end of the login, because the agent signs.
func newLogin(ctx context.Context, cfg Config) (*login, error) {
	l := &login{cfg: cfg}
	if len(cfg.Key) > 0 {
		s, err := parseKey(cfg)
		if err != nil {
			return nil, err
		}
		l.add(s, cfg.KeyPath)
	}
	if cfg.AgentSocket == "" {
		return l, nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", cfg.AgentSocket)
	if err != nil {
		if len(l.signers) > 0 || cfg.Password != "" {
			cfg.Log.WarnContext(ctx, "the ssh agent does not answer", "socket", cfg.AgentSocket, "err", err)
			return l, nil
		}
		return nil, &connector.KeyError{
			Path: cfg.AgentSocket, Err: fmt.Errorf("the ssh agent does not answer: %w", err),
			Hint: "start an agent and export its SSH_AUTH_SOCK, or set password or privateKeyPath in the config",
		}
	}
	l.agent = conn
	l.watch = context.AfterFunc(ctx, func() { _ = conn.Close() }) // the agent may accept the connection and never answer
	held, err := agent.NewClient(conn).Signers()
	if err != nil {
		cfg.Log.WarnContext(ctx, "the ssh agent lists no keys", "socket", cfg.AgentSocket, "err", err)
	}
	for _, s := range held {
		l.add(s, "agent")
	}
	return l, nil
}

func (l *login) add(s ssh.Signer, from string) {
	name := fmt.Sprintf("key %s (%s)", ssh.FingerprintSHA256(s.PublicKey()), from)
	l.signers, l.names = append(l.signers, s), append(l.names, name)
}

func (l *login) close() {
	if l.agent != nil {
		l.watch()
		_ = l.agent.Close()
	}
}

// parseKey parses a private key and decrypts it with the passphrase if it is encrypted.
func parseKey(cfg Config) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(cfg.Key)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return s, nil
	case !errors.As(err, &locked):
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("not a private key that can be read"),
			Hint: "set privateKeyPath to a private key in OpenSSH or PEM format, not to the .pub file",
		}
	case cfg.Passphrase == "":
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("the key is encrypted and no passphrase is set"),
			Hint: "set passphrase beside privateKeyPath, or load the key into an agent (ssh-add) and leave privateKeyPath out",
		}
	}
	if s, err = ssh.ParsePrivateKeyWithPassphrase(cfg.Key, []byte(cfg.Passphrase)); err != nil {
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("the passphrase does not decrypt the key"),
			Hint: "check passphrase in the config; `ssh-keygen -y -f KEY` prompts for it",
		}
	}
	return s, nil
}

// methods returns the authentication methods in order. The library tries each kind once, so
// all keys are one method.
func (l *login) methods() []ssh.AuthMethod {
	var ms []ssh.AuthMethod
	if len(l.signers) > 0 {
		ms = append(ms, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.recordTried(l.names...)
			return l.signers, nil
		}))
	}
	if l.cfg.Password != "" {
		ms = append(ms,
			ssh.PasswordCallback(func() (string, error) {
				l.recordTried("password")
				return l.cfg.Password, nil
			}),
			ssh.KeyboardInteractive(l.answer),
		)
	}
	return ms
}

// errAsked ends a keyboard-interactive dialogue that the password cannot answer.
var errAsked = errors.New("the server asks for more than the password")

// answer answers each question without echo with the password. It does so once: a second
// dialogue means that the password is wrong.
func (l *login) answer(_, _ string, questions []string, echo []bool) ([]string, error) {
	if len(questions) == 0 {
		return nil, nil // information only
	}
	if slices.Contains(l.tried, "keyboard-interactive") {
		return nil, errAsked
	}
	l.recordTried("keyboard-interactive")
	answers := make([]string, len(questions))
	for i := range questions {
		if echo[i] {
			return nil, errAsked
		}
		answers[i] = l.cfg.Password
	}
	return answers, nil
}

// recordAccepted records the methods that the server accepts.
func (l *login) recordAccepted(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.began, l.accepts = true, c.AllowedMethods
	return nil, nil
}

// recordTried records the methods that were tried.
func (l *login) recordTried(what ...string) {
	for _, w := range what {
		if !slices.Contains(l.tried, w) {
			l.tried = append(l.tried, w)
		}
	}
}
