package ssh

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// Policy determines which host keys are trusted.
type Policy string

const (
	// Strict trusts the keys in the known_hosts files. The zero Policy is Strict.
	Strict Policy = "strict"
	// AcceptNew also trusts the key of an unknown host, and adds it to Config.Record.
	AcceptNew Policy = "accept-new"
	// Pinned trusts only Config.HostKey.
	Pinned Policy = "pinned"
)

// The defaults for zero fields of a Config.
const (
	DefaultTimeout     = 15 * time.Second
	DefaultKeepalive   = 5 * time.Second
	DefaultDeadAfter   = 20 * time.Second
	DefaultMaxSessions = 8 // sshd's default of MaxSessions is 10; the rest is left to people
)

// Config configures the connection to one host. It contains secrets in clear text.
type Config struct {
	Address string // IP address or name
	Port    int    // 0 means 22
	User    string // empty means root

	Password   string // also used for keyboard-interactive questions
	Key        []byte // a private key, PEM
	KeyPath    string // name of Key in errors
	Passphrase string // of Key
	// AgentSocket is the path of an SSH agent's socket; empty means no agent.
	AgentSocket string

	// SudoPassword is the password for sudo; empty means Password.
	SudoPassword string

	Policy  Policy
	HostKey string // for Pinned: "ssh-ed25519 AAAA…" or "SHA256:…"
	// KnownHosts are files in OpenSSH's known_hosts format. Missing files are ignored.
	KnownHosts []string
	// Record is the known_hosts file that AcceptNew adds keys to (created with mode
	// 0600). It is read in addition to KnownHosts.
	Record string

	// Timeout is the timeout for the entire connection setup: dial, host key, login.
	Timeout time.Duration
	// Keepalive is the interval of keepalives. The connection is closed if no data is
	// received for DeadAfter.
	Keepalive, DeadAfter time.Duration
	// MaxSessions is the maximum number of parallel commands. Further commands wait.
	MaxSessions int
	// Path is the PATH of commands; empty means connector.SearchPath.
	Path string

	// Jump is the connection to the jump host; nil means a direct connection. Several
	// Conns may share it. Closing them does not close it.
	Jump *Conn

	// Log receives events such as an accepted host key and a re-established connection.
	// Nil disables logging.
	Log *slog.Logger

	// Dial opens TCP connections if Jump is nil; nil means net.Dialer.
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
