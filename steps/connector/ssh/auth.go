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

// login is one attempt to be let in: what there is to try, and what was tried.
type login struct {
	cfg     Config
	signers []ssh.Signer
	names   []string // what errors call each signer
	agent   net.Conn
	watch   func() bool // ends what closes agent with the login's context

	began   bool // the server knows who we are: from now on a refusal is about the login
	tried   []string
	accepts []string
	err     error // of our own keys
}

// newLogin reads the key and asks the agent. The agent's connection has to stay
// open until the login is over: it signs.
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
	l.watch = context.AfterFunc(ctx, func() { _ = conn.Close() }) // an agent may accept and say nothing
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

// parseKey reads a private key, decrypting it where there is a passphrase.
func parseKey(cfg Config) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(cfg.Key)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return s, nil
	case !errors.As(err, &locked):
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("not a private key that can be read"),
			Hint: "privateKeyPath has to name a private key in OpenSSH or PEM form, not the .pub file",
		}
	case cfg.Passphrase == "":
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("it is encrypted and there is no passphrase"),
			Hint: "set passphrase beside privateKeyPath, or load the key into an agent (ssh-add) and leave privateKeyPath out",
		}
	}
	if s, err = ssh.ParsePrivateKeyWithPassphrase(cfg.Key, []byte(cfg.Passphrase)); err != nil {
		return nil, &connector.KeyError{
			Path: cfg.KeyPath, Err: errors.New("the passphrase does not open it"),
			Hint: "check passphrase in the config: `ssh-keygen -y -f KEY` asks for it",
		}
	}
	return s, nil
}

// methods gives what the library tries, in this order. The library tries each
// kind once, so all keys are one method.
func (l *login) methods() []ssh.AuthMethod {
	var ms []ssh.AuthMethod
	if len(l.signers) > 0 {
		ms = append(ms, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.note1(l.names...)
			return l.signers, nil
		}))
	}
	if l.cfg.Password != "" {
		ms = append(ms,
			ssh.PasswordCallback(func() (string, error) {
				l.note1("password")
				return l.cfg.Password, nil
			}),
			ssh.KeyboardInteractive(l.answer),
		)
	}
	return ms
}

// errAsked ends a dialogue that the password cannot answer.
var errAsked = errors.New("the server asks more than the password")

// answer gives the password to each question that is not to be shown on a
// screen, once: asked again, it was wrong.
func (l *login) answer(_, _ string, questions []string, echo []bool) ([]string, error) {
	if len(questions) == 0 {
		return nil, nil // only something to read
	}
	if slices.Contains(l.tried, "keyboard-interactive") {
		return nil, errAsked
	}
	l.note1("keyboard-interactive")
	answers := make([]string, len(questions))
	for i := range questions {
		if echo[i] {
			return nil, errAsked
		}
		answers[i] = l.cfg.Password
	}
	return answers, nil
}

// note remembers what the server accepts.
func (l *login) note(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.began, l.accepts = true, c.AllowedMethods
	return nil, nil
}

func (l *login) note1(what ...string) {
	for _, w := range what {
		if !slices.Contains(l.tried, w) {
			l.tried = append(l.tried, w)
		}
	}
}
