package ssh

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// Policy says which host keys are trusted.
type Policy string

const (
	// Strict trusts what the known_hosts files hold. The zero Policy is Strict.
	Strict Policy = "strict"
	// AcceptNew also trusts, and records, the key of a machine never seen before.
	AcceptNew Policy = "accept-new"
	// Pinned trusts Config.HostKey alone.
	Pinned Policy = "pinned"
)

// The settings that a Config leaves at zero.
const (
	DefaultTimeout     = 15 * time.Second
	DefaultKeepalive   = 5 * time.Second
	DefaultDeadAfter   = 20 * time.Second
	DefaultMaxSessions = 8 // sshd's own MaxSessions is 10; people look on too
)

// Config says how to reach one machine. Secrets in it are revealed.
type Config struct {
	Address string // IP address or name
	Port    int    // 0 means 22
	User    string // empty means root

	Password   string // also the answer to keyboard-interactive questions
	Key        []byte // a private key, PEM
	KeyPath    string // what errors call Key
	Passphrase string // of Key
	// AgentSocket is the path of an SSH agent's socket; empty asks none.
	AgentSocket string

	// SudoPassword is what sudo asks for; empty means Password.
	SudoPassword string

	Policy  Policy
	HostKey string // for Pinned: "ssh-ed25519 AAAA…" or "SHA256:…"
	// KnownHosts are files in OpenSSH's form; those that do not exist are passed over.
	KnownHosts []string
	// Record is the known_hosts file that AcceptNew adds to (made with mode 0600).
	// It is read as those of KnownHosts are.
	Record string

	// Timeout is for the whole of connecting: dial, host key, login.
	Timeout time.Duration
	// Keepalive is the time between two questions to the peer, DeadAfter how
	// long it may say nothing at all before it counts as dead.
	Keepalive, DeadAfter time.Duration
	// MaxSessions is how many commands run at the same time; more of them wait.
	MaxSessions int
	// Path is where programs are looked for; empty means connector.SearchPath.
	Path string

	// Jump is the way to the machine; nil dials it from here. Many Conns may
	// share one; closing them does not close it.
	Jump *Conn

	// Log gets what a person should know about: a key that was accepted, a
	// connection that was made again. nil logs nothing.
	Log *slog.Logger

	// Dial makes TCP connections when there is no Jump; nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	if c.Port == 0 {
		c.Port = 22
	}
	if c.User == "" {
		c.User = "root"
	}
	if c.SudoPassword == "" {
		c.SudoPassword = c.Password
	}
	if c.Policy == "" {
		c.Policy = Strict
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Keepalive <= 0 {
		c.Keepalive = DefaultKeepalive
	}
	if c.DeadAfter <= 0 {
		c.DeadAfter = DefaultDeadAfter
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: c.Keepalive}).DialContext
	}
	return c
}

func (c Config) addr() string { return net.JoinHostPort(c.Address, strconv.Itoa(c.Port)) }
