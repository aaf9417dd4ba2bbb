package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/steps/connector"
)

// families are the requested host key algorithms by key type, the preferred type first.
var families = [][]string{
	{ssh.KeyAlgoED25519},
	{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
	{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512},
}

// certificates are requested if a known_hosts file trusts a CA.
var certificates = []string{
	ssh.CertAlgoED25519v01,
	ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSASHA512v01,
}

// hostKeys verifies the host key of one host.
type hostKeys struct {
	cfg     Config
	verify  ssh.HostKeyCallback // nil for Pinned
	pin     ssh.PublicKey       // for Pinned by key
	choices [][]string          // lists of algorithms; the first one is in use
	refused *connector.HostKeyError
	failed  error // why a key could not be added to the file
}

func newHostKeys(cfg Config) (*hostKeys, error) {
	k := &hostKeys{cfg: cfg}
	switch cfg.Policy {
	case Pinned:
		return k, k.readPin()
	case Strict, AcceptNew:
		return k, k.readKnown()
	}
	return nil, fmt.Errorf("host key policy %q is not one of strict, accept-new, pinned", cfg.Policy)
}

func (k *hostKeys) readPin() error {
	pin := strings.TrimSpace(k.cfg.HostKey)
	if strings.HasPrefix(pin, "SHA256:") {
		k.choices = families
		return nil
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin))
	if err != nil {
		return &connector.KeyError{
			Path: "hostKey of " + k.cfg.addr(), Err: errors.New("neither a public key nor a fingerprint"),
			Hint: "write it as `ssh-keyscan` prints it (ssh-ed25519 AAAA…) or as `ssh-keygen -l` does (SHA256:…)",
		}
	}
	k.pin, k.choices = pub, [][]string{thenOthers(algorithmsOf(pub))}
	return nil
}

// readKnown reads the known_hosts files, and requests the key types that they contain for
// the host: a known host must not be rejected because it presents another of its keys.
func (k *hostKeys) readKnown() error {
	var files []string
	for _, f := range append(slices.Clone(k.cfg.KnownHosts), k.cfg.Record) {
		if f == "" || slices.Contains(files, f) {
			continue
		}
		if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files = append(files, f)
	}
	verify, err := knownhosts.New(files...)
	if err != nil {
		return &connector.KeyError{
			Path: strings.Join(files, ", "), Err: err,
			Hint: "correct or remove that line of the known_hosts file",
		}
	}
	k.verify = verify
	var algorithms []string
	for _, entry := range k.known() {
		if isAuthority(entry) {
			algorithms = append(algorithms, certificates...)
			continue
		}
		algorithms = append(algorithms, algorithmsOf(entry.Key)...)
	}
	slices.SortStableFunc(algorithms, func(a, b string) int { return rank(a) - rank(b) })
	k.choices = [][]string{thenOthers(slices.Compact(algorithms))}
	return nil
}

// thenOthers appends all other algorithms to those of the known keys. A host that has lost
// its known key then presents another one, which is reported as a changed key.
func thenOthers(first []string) []string {
	for _, a := range slices.Concat(families...) {
		if !slices.Contains(first, a) {
			first = append(first, a)
		}
	}
	return first
}

// rank returns the position of an algorithm: certificates first, then as in families.
func rank(algorithm string) int {
	if i := slices.Index(certificates, algorithm); i >= 0 {
		return i
	}
	return len(certificates) + slices.Index(slices.Concat(families...), algorithm)
}

// probe is a key that no file contains: verifying it makes knownhosts list the known keys.
type probe struct{}

func (probe) Type() string                        { return "probe" }
func (probe) Marshal() []byte                     { return []byte("probe") }
func (probe) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

func (k *hostKeys) known() []knownhosts.KnownKey {
	var unknown *knownhosts.KeyError
	if err := k.verify(k.cfg.addr(), &net.TCPAddr{}, probe{}); errors.As(err, &unknown) {
		return unknown.Want
	}
	return nil
}

// isAuthority reports whether an entry is a CA, which knownhosts does not expose.
func isAuthority(entry knownhosts.KnownKey) bool {
	b, err := os.ReadFile(entry.Filename)
	if err != nil {
		return false
	}
	lines := bytes.Split(b, []byte("\n"))
	return entry.Line >= 1 && entry.Line <= len(lines) && bytes.HasPrefix(bytes.TrimSpace(lines[entry.Line-1]), []byte("@cert-authority"))
}

// algorithmsOf returns the algorithms that a key can be used with.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512} // not SHA-1
	}
	return []string{key.Type()}
}

func (k *hostKeys) algorithms() []string { return k.choices[0] }

// another switches to the next list of algorithms. It returns false if there is none, or if
// the last attempt failed for another reason than the host key.
func (k *hostKeys) another() bool {
	if len(k.choices) < 2 || k.refused == nil {
		return false
	}
	k.choices = k.choices[1:]
	return true
}

// check is the ssh.HostKeyCallback.
func (k *hostKeys) check(address string, remote net.Addr, key ssh.PublicKey) error {
	k.refused = nil
	e := &connector.HostKeyError{
		Addr: k.cfg.addr(), KeyType: key.Type(), Fingerprint: ssh.FingerprintSHA256(key),
		Line: knownhosts.Line([]string{k.cfg.addr()}, key), Record: k.cfg.Record,
	}
	if k.cfg.Policy == Pinned {
		e.Pinned, e.Known = true, []string{strings.TrimSpace(k.cfg.HostKey)}
		if k.pin != nil && bytes.Equal(k.pin.Marshal(), key.Marshal()) || e.Known[0] == e.Fingerprint {
			return nil
		}
		k.refused = e
		return e
	}
	err := k.verify(address, remote, key)
	var unknown *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		e.Revoked, e.Known = true, []string{place(revoked.Revoked)}
	case errors.As(err, &unknown):
		for _, w := range unknown.Want {
			e.Known = append(e.Known, place(w))
		}
		if len(e.Known) == 0 && k.cfg.Policy == AcceptNew {
			return k.accept(e)
		}
	default: // an invalid certificate
		return err
	}
	k.refused = e
	return e
}

func place(k knownhosts.KnownKey) string { return fmt.Sprintf("%s:%d", k.Filename, k.Line) }

// accept adds the key of an unknown host to the file.
func (k *hostKeys) accept(e *connector.HostKeyError) error {
	if k.cfg.Record == "" {
		return errors.New("accept-new requires a known_hosts file to add the key to")
	}
	if err := record(k.cfg.Record, e.Line); err != nil {
		k.failed = fmt.Errorf("record the host key of %s: %w", e.Addr, err)
		return k.failed
	}
	k.cfg.Log.Warn("accepted a new host key", "address", e.Addr, "type", e.KeyType, "fingerprint", e.Fingerprint, "file", k.cfg.Record)
	return nil
}

// record adds one line to a known_hosts file atomically: a partial or lost line would make
// every later connection fail. A lock on the folder serializes connections and processes.
func record(path, line string) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // releases the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return durable.WriteFile(path, append(text, line+"\n"...), 0o600)
}
