package connector

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Advised is an error that knows what a person can do about it. Every error type
// here is one.
type Advised interface {
	error
	Advice() string
}

// ErrClosed is Exec's answer after Close.
var ErrClosed = errors.New("the connection was closed")

// DialError says that an address did not answer at all.
type DialError struct {
	Addr string // host:port
	Err  error
	Hint string // what the person at the keyboard can do
	// Forbidden says that the host in between answered and allows no such connection.
	Forbidden bool
}

func (e *DialError) Error() string { return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err) }

// Unwrap gives the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *DialError) Advice() string { return e.Hint }

// AuthError says that the SSH server answered and let nobody in.
type AuthError struct {
	Addr, User string
	Tried      []string // "key SHA256:… (~/.ssh/id_ed25519)", "password"; none: there was nothing to try
	Accepts    []string // the methods that the server said it takes, where it said so
	Err        error
}

func (e *AuthError) Error() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("log in to %s as %s: no key and no password to try", e.Addr, e.User)
	}
	return fmt.Sprintf("log in to %s as %s: refused; tried %s", e.Addr, e.User, strings.Join(e.Tried, ", "))
}

// Unwrap gives the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *AuthError) Advice() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("set password, privateKeyPath or agent for this host; the agent is asked at SSH_AUTH_SOCK; or put a key of yours into ~%s/.ssh/authorized_keys there", e.User)
	}
	if len(e.Tried) > fewKeys {
		return "servers give up after a few keys: set privateKeyPath and agent: false for this host, so that the right key comes first"
	}
	return fmt.Sprintf("check user, password and privateKeyPath of this host in the config, and ~%s/.ssh/authorized_keys there", e.User)
}

// fewKeys is how many attempts sshd allows by its MaxAuthTries, less the password's.
const fewKeys = 5

// KeyError says that a private key on this machine cannot be used.
type KeyError struct {
	Path string
	Err  error
	Hint string
}

func (e *KeyError) Error() string { return fmt.Sprintf("private key %s: %v", e.Path, e.Err) }

// Unwrap gives the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *KeyError) Advice() string { return e.Hint }

// HostKeyError says that the host's key is not one to trust.
type HostKeyError struct {
	Addr        string
	KeyType     string // "ssh-ed25519"
	Fingerprint string // "SHA256:…", as ssh-keygen -l prints it
	Line        string // the line for known_hosts
	// Known is where another key of this host stands ("file:line"), or the key
	// that was pinned. None: the host is not known at all.
	Known   []string
	Pinned  bool
	Revoked bool
	// Record is the known_hosts file that kubexm writes to; it may be empty.
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

// Advice says what to do.
func (e *HostKeyError) Advice() string {
	compare := "compare the fingerprint with `ssh-keygen -lf /etc/ssh/ssh_host_" + shortType(e.KeyType) + "_key.pub` on the host"
	record := e.Record
	if record == "" {
		record = "~/.ssh/known_hosts"
	}
	switch {
	case e.Revoked:
		return "the key was given up on purpose: do not connect; make a new key on the host, or remove the @revoked line"
	case e.Pinned:
		return compare + "; if it is right, set hostKey to it in the config; if not, somebody may be listening in between"
	case len(e.Known) > 0:
		return compare + "; if the machine was installed anew, remove " + removal(e.Known) + "; if not, somebody may be listening in between"
	}
	return fmt.Sprintf("%s; if it is the same, add this line to %s: %s (or set hostKeyPolicy: accept-new in the config)", compare, record, e.Line)
}

// removal says how the lines at these places ("file:line") are removed: the commands
// to type, one for each file.
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

// shortType gives the part of a key type that is in the names of sshd's files.
func shortType(keyType string) string {
	switch {
	case strings.Contains(keyType, "ed25519"):
		return "ed25519"
	case strings.Contains(keyType, "ecdsa"):
		return "ecdsa"
	}
	return "rsa"
}

// JumpError says that the way to the host ended at the machine before it.
type JumpError struct {
	Jump string // host:port of that machine
	Addr string // host:port behind it
	Err  error
	Hint string // set where the jump host is fine and the way on is not
}

func (e *JumpError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("jump host of %s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("connect to %s through jump host %s: %v", e.Addr, e.Jump, e.Err)
}

// Unwrap gives the cause.
func (e *JumpError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *JumpError) Advice() string { return e.Hint }

// BrokenError says that the connection ended under a command: whether the
// command took effect is unknown.
type BrokenError struct {
	Addr string
	Verb string
	Err  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("connection to %s broke during %s: %v", e.Addr, e.Verb, e.Err)
}

// Unwrap gives the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *BrokenError) Advice() string {
	return "check that the host is up and the network to it holds, then run the same command again: what is done is skipped"
}

// TimeoutError says that a command ran longer than its Cmd.Timeout.
type TimeoutError struct {
	Addr  string
	Verb  string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s on %s: not done after %s", e.Verb, e.Addr, e.After)
}

// Advice says what to do.
func (e *TimeoutError) Advice() string {
	return "see on the host what the command waits for"
}

// Timeout makes it a timeout to those who ask by interface.
func (e *TimeoutError) Timeout() bool { return true }

// SudoError says that a command could not become root's. Nothing was run.
type SudoError struct {
	Addr, User string
	// Wrong says that sudo took the password for wrong; without it there was no
	// password to give, or sudo refused for a reason that Stderr tells.
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

// Advice says what to do.
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
