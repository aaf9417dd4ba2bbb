package connector

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Advised is an error with advice for the user. All error types of this package implement
// it.
type Advised interface {
	error
	Advice() string
}

// ErrClosed is the error of Exec after Close.
var ErrClosed = errors.New("the connection was closed")

// DialError means that a connection to an address failed.
type DialError struct {
	Addr string // host:port
	Err  error
	Hint string // the advice
	// Forbidden means that the forwarding host answered and does not allow the connection.
	Forbidden bool
}

func (e *DialError) Error() string { return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err) }

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Advice states what the user can do.
func (e *DialError) Advice() string { return e.Hint }

// AuthError means that the SSH server rejected the login.
type AuthError struct {
	Addr, User string
	Tried      []string // "key SHA256:… (~/.ssh/id_ed25519)", "password"; empty: no credentials
	Accepts    []string // the methods that the server accepts, if known
	Err        error
}

func (e *AuthError) Error() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("log in to %s as %s: no key and no password to try", e.Addr, e.User)
	}
	return fmt.Sprintf("log in to %s as %s: refused; tried %s", e.Addr, e.User, strings.Join(e.Tried, ", "))
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// Advice states what the user can do.
func (e *AuthError) Advice() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("set password, privateKeyPath or agent for this host (SSH_AUTH_SOCK is the agent's socket), and add the public key to ~%s/.ssh/authorized_keys on the host", e.User)
	}
	if len(e.Tried) > fewKeys {
		return "SSH servers reject a login after a few keys: set privateKeyPath and agent: false for this host, so that the right key is tried first"
	}
	return fmt.Sprintf("check user, password and privateKeyPath of this host in the config, and ~%s/.ssh/authorized_keys on the host", e.User)
}

// fewKeys is sshd's default of MaxAuthTries, minus one for the password.
const fewKeys = 5

// KeyError means that a private key on this machine cannot be used.
type KeyError struct {
	Path string
	Err  error
	Hint string
}

func (e *KeyError) Error() string { return fmt.Sprintf("private key %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// Advice states what the user can do.
func (e *KeyError) Advice() string { return e.Hint }

// HostKeyError means that the host's key is not trusted.
type HostKeyError struct {
	Addr        string
	KeyType     string // "ssh-ed25519"
	Fingerprint string // "SHA256:…", as ssh-keygen -l prints it
	Line        string // the line for known_hosts
	// Known are the places of other keys of this host ("file:line"), or the pinned key.
	// Empty means that the host is unknown.
	Known   []string
	Pinned  bool
	Revoked bool
	// Record is the known_hosts file that kubexm adds keys to; it may be empty.
	Record string
}

func (e *HostKeyError) Error() string {
	key := e.KeyType + " " + e.Fingerprint
	switch {
	case e.Revoked:
		return fmt.Sprintf("host key of %s is revoked (%s): %s", e.Addr, strings.Join(e.Known, ", "), key)
	case e.Pinned:
		return fmt.Sprintf("host key of %s is not the pinned one: it is %s, the config has %s", e.Addr, key, strings.Join(e.Known, ", "))
	case len(e.Known) > 0:
		return fmt.Sprintf("host key of %s has changed: it is %s now, another is in %s", e.Addr, key, strings.Join(e.Known, ", "))
	}
	return fmt.Sprintf("host key of %s is not known: %s", e.Addr, key)
}

// Advice states what the user can do.
func (e *HostKeyError) Advice() string {
	compare := "compare the fingerprint with `ssh-keygen -lf /etc/ssh/ssh_host_" + shortType(e.KeyType) + "_key.pub` on the host"
	record := e.Record
	if record == "" {
		record = "~/.ssh/known_hosts"
	}
	switch {
	case e.Revoked:
		return "known_hosts revokes this key: do not connect; create a new key on the host, or remove the @revoked line"
	case e.Pinned:
		return compare + "; if it matches, set hostKey to it in the config; if not, the connection may be intercepted"
	case len(e.Known) > 0:
		return compare + "; if the host was reinstalled, remove " + removal(e.Known) + "; if not, the connection may be intercepted"
	}
	return fmt.Sprintf("%s; if it matches, add this line to %s: %s (or set hostKeyPolicy: accept-new in the config)", compare, record, e.Line)
}

// removal returns the commands that remove the lines at these places ("file:line"), one
// per file.
func removal(places []string) string {
	var files []string
	lines := map[string][]string{}
	for _, p := range places {
		i := strings.LastIndexByte(p, ':')
		if i < 0 {
			return "the old line"
		}
		file := p[:i]
		if lines[file] == nil {
			files = append(files, file)
		}
		lines[file] = append(lines[file], p[i+1:]+"d")
	}
	what := "the old line"
	if len(places) > 1 {
		what = "the old lines"
	}
	var commands []string
	for _, f := range files {
		commands = append(commands, "`"+Quote([]string{"/bin/sed", "-i", strings.Join(lines[f], ";"), f})[len("/bin/"):]+"`")
	}
	return what + ": " + strings.Join(commands, " and ")
}

// shortType returns the key type as in the names of sshd's key files.
func shortType(keyType string) string {
	switch {
	case strings.Contains(keyType, "ed25519"):
		return "ed25519"
	case strings.Contains(keyType, "ecdsa"):
		return "ecdsa"
	}
	return "rsa"
}

// JumpError means that the connection through a jump host failed.
type JumpError struct {
	Jump string // host:port of the jump host
	Addr string // host:port of the host behind it
	Err  error
	Hint string // set if the jump host was reached and the connection from it failed
}

func (e *JumpError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("jump host of %s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("connect to %s through jump host %s: %v", e.Addr, e.Jump, e.Err)
}

// Unwrap returns the cause.
func (e *JumpError) Unwrap() error { return e.Err }

// Advice states what the user can do.
func (e *JumpError) Advice() string { return e.Hint }

// BrokenError means that the connection broke during a command. It is unknown whether the
// command took effect.
type BrokenError struct {
	Addr string
	Verb string
	Err  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("connection to %s broke during %s: %v", e.Addr, e.Verb, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Advice states what the user can do.
func (e *BrokenError) Advice() string {
	return "check that the host is up and the network to it is stable, then run the same command again: completed steps are skipped"
}

// TimeoutError means that a command ran longer than its Cmd.Timeout.
type TimeoutError struct {
	Addr  string
	Verb  string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s on %s: timed out after %s", e.Verb, e.Addr, e.After)
}

// Advice states what the user can do.
func (e *TimeoutError) Advice() string {
	return "check on the host what the command is waiting for"
}

// Timeout returns true, as in net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// SudoError means that sudo did not run a command as root. Nothing was run.
type SudoError struct {
	Addr, User string
	// Wrong means that sudo rejected the password. Otherwise there is no password, or sudo
	// failed with the message in Stderr.
	Wrong  bool
	Stderr string
}

func (e *SudoError) Error() string {
	if e.Wrong {
		return fmt.Sprintf("sudo on %s: wrong password for %s", e.Addr, e.User)
	}
	if e.Stderr == "" {
		return fmt.Sprintf("sudo on %s: refused for %s", e.Addr, e.User)
	}
	return fmt.Sprintf("sudo on %s: refused for %s: %s", e.Addr, e.User, e.Stderr)
}

// Advice states what the user can do.
func (e *SudoError) Advice() string {
	switch {
	case e.Wrong:
		return fmt.Sprintf("set sudoPassword of this host in the config to the password of %s", e.User)
	case strings.Contains(e.Stderr, "not found"), strings.Contains(e.Stderr, "No such file"):
		return "install sudo on the host, or log in as root"
	case strings.Contains(e.Stderr, "sudoers"):
		return fmt.Sprintf("let %s become root: a line such as `%s ALL=(ALL) NOPASSWD: ALL` in /etc/sudoers.d/kubexm (edit with visudo)", e.User, e.User)
	case strings.Contains(e.Stderr, "tty"):
		return "remove `Defaults requiretty` from sudoers on the host"
	}
	return fmt.Sprintf("set sudoPassword of this host in the config, or let %s use sudo without a password", e.User)
}
