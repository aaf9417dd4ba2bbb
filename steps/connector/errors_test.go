package connector_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// TestErrorsHelp: each error says what, in one line without a full stop, keeps
// its cause, and gives advice.
func TestErrorsHelp(t *testing.T) {
	cause := io.ErrUnexpectedEOF
	for _, c := range []struct {
		err    connector.Advised
		says   string
		advice string
	}{
		{&connector.DialError{Addr: "h:22", Err: cause, Hint: "do this"}, "connect to h:22: unexpected EOF", "do this"},
		{&connector.AuthError{Addr: "h:22", User: "u", Err: cause}, "log in to h:22 as u: no key and no password to try", "set password"},
		{&connector.AuthError{Addr: "h:22", User: "u", Tried: []string{"password"}, Err: cause}, "refused; tried password", "~u/.ssh/authorized_keys"},
		{&connector.AuthError{Addr: "h:22", User: "u", Tried: strings.Fields("a b c d e f"), Err: cause}, "tried a, b", "agent: false"},
		{&connector.KeyError{Path: "/k", Err: cause, Hint: "do this"}, "private key /k: unexpected EOF", "do this"},
		{&connector.HostKeyError{Addr: "h:22", KeyType: "ecdsa-sha2-nistp256", Fingerprint: "SHA256:x", Line: "h ecdsa"}, "host key of h:22 is not known: ecdsa-sha2-nistp256 SHA256:x", "add this line to ~/.ssh/known_hosts: h ecdsa"},
		{&connector.HostKeyError{Addr: "h:22", KeyType: "ssh-rsa", Known: []string{"f:1"}}, "has changed", "ssh_host_rsa_key.pub"},
		{&connector.HostKeyError{Addr: "h:22", Pinned: true, Known: []string{"SHA256:y"}}, "is not the pinned one", "set hostKey"},
		{&connector.HostKeyError{Addr: "h:22", Revoked: true, Known: []string{"f:1"}}, "is revoked (f:1)", "do not connect"},
		{&connector.BrokenError{Addr: "h:22", Verb: "fs.write", Err: cause}, "connection to h:22 broke during fs.write: unexpected EOF", "run the same command again"},
		{&connector.TimeoutError{Addr: "h:22", Verb: "exec", After: time.Minute}, "exec on h:22: timed out after 1m0s", "check on the host"},
		{&connector.SudoError{Addr: "h:22", User: "u", Wrong: true}, "sudo on h:22: wrong password for u", "set sudoPassword"},
		{&connector.SudoError{Addr: "h:22", User: "u"}, "sudo on h:22: refused for u", "set sudoPassword"},
		{&connector.SudoError{Addr: "h:22", User: "u", Stderr: "u is not in the sudoers file."}, "sudoers file", "NOPASSWD"},
		{&connector.SudoError{Addr: "h:22", User: "u", Stderr: "sudo: not found"}, "not found", "install sudo"},
	} {
		text := c.err.Error()
		if !strings.Contains(text, c.says) || strings.Contains(text, "\n") {
			t.Errorf("%T says %q, want %q", c.err, text, c.says)
		}
		if !strings.Contains(c.err.Advice(), c.advice) || strings.HasSuffix(c.err.Advice(), ".") {
			t.Errorf("%T advises %q, want %q", c.err, c.err.Advice(), c.advice)
		}
	}
	j := &connector.JumpError{Jump: "j:22", Addr: "h:22", Err: &connector.DialError{Addr: "j:22", Err: cause}}
	if !errors.Is(j, cause) || j.Error() != "jump host of h:22: connect to j:22: unexpected EOF" {
		t.Errorf("%v", j)
	}
}
