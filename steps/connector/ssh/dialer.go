package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// Env is the environment of the workdir host that connections use.
type Env struct {
	LookupEnv func(string) (string, bool)  // os.LookupEnv
	ReadFile  func(string) ([]byte, error) // os.ReadFile
	Home      string                       // replaces ~ in privateKeyPath
	// KnownHosts are read-only files: ~/.ssh/known_hosts, /etc/ssh/ssh_known_hosts. Record
	// is the cluster's own file, to which accepted keys are added.
	KnownHosts []string
	Record     string
	Log        *slog.Logger
}

// Dialer creates the Conns of a cluster's hosts. Hosts behind the same jump host share one
// connection to it. It is safe for concurrent use.
type Dialer struct {
	env   Env
	mu    sync.Mutex
	jumps map[string]*Conn
}

// NewDialer returns a Dialer without connections.
func NewDialer(env Env) *Dialer {
	return &Dialer{env: env, jumps: map[string]*Conn{}}
}

// Host returns the Conn of h, which is not connected yet. h must include the defaults of
// spec.ssh. It fails only for local reasons, such as a missing secret or key file.
func (d *Dialer) Host(h manifest.Host) (*Conn, error) {
	cfg, err := d.config(h.Address, h.Login)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	if cfg.SudoPassword, err = d.reveal(h.SudoPassword); err != nil {
		return nil, fmt.Errorf("host %s: sudoPassword: %w", h.Name, err)
	}
	if h.JumpHost != nil {
		if cfg.Jump, err = d.jump(*h.JumpHost); err != nil {
			return nil, fmt.Errorf("host %s: jumpHost: %w", h.Name, err)
		}
	}
	return New(cfg), nil
}

// Close ends the connections to jump hosts, and thereby to the hosts behind them.
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, j := range d.jumps {
		errs = append(errs, j.Close())
	}
	return errors.Join(errs...)
}

func (d *Dialer) jump(j manifest.JumpHost) (*Conn, error) {
	cfg, err := d.config(j.Address, j.Login)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := strings.Join([]string{
		cfg.Address, strconv.Itoa(cfg.Port), cfg.User, cfg.KeyPath, string(cfg.Policy), cfg.HostKey, cfg.Password,
	}, "\x00")
	if d.jumps[id] == nil {
		d.jumps[id] = New(cfg)
	}
	return d.jumps[id], nil
}

func (d *Dialer) config(address string, l manifest.Login) (Config, error) {
	cfg := Config{
		Address: address, Port: l.Port, User: l.User,
		Policy: Policy(l.HostKeyPolicy), HostKey: l.HostKey,
		KnownHosts: d.env.KnownHosts, Record: d.env.Record,
		Timeout: time.Duration(l.ConnectionTimeout), Log: d.env.Log,
	}
	var err error
	if cfg.Password, err = d.reveal(l.Password); err != nil {
		return cfg, fmt.Errorf("password: %w", err)
	}
	if cfg.Passphrase, err = d.reveal(l.Passphrase); err != nil {
		return cfg, fmt.Errorf("passphrase: %w", err)
	}
	agent := l.Password.IsZero() && l.PrivateKeyPath == ""
	if l.Agent != nil {
		agent = *l.Agent
	}
	if agent {
		cfg.AgentSocket, _ = d.env.LookupEnv("SSH_AUTH_SOCK")
	}
	if l.PrivateKeyPath != "" {
		cfg.KeyPath = l.PrivateKeyPath
		path := l.PrivateKeyPath
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(d.env.Home, rest)
		}
		if cfg.Key, err = d.env.ReadFile(path); err != nil {
			return cfg, &connector.KeyError{
				Path: cfg.KeyPath, Err: cmp.Or(reason(err), err),
				Hint: "set privateKeyPath to a key on this machine that the user who runs kubexm may read",
			}
		}
	}
	return cfg, nil
}

// reason returns a file error without its path, which KeyError contains already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return nil
}

func (d *Dialer) reveal(s manifest.Secret) (string, error) {
	return s.Reveal(d.env.LookupEnv, d.env.ReadFile)
}
