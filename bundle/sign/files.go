package sign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// The environment variables that hold the password of a private key.
const (
	PasswordVariable       = "KUBEXM_KEY_PASSWORD" //nolint:gosec // the name of one, not a password
	CosignPasswordVariable = "COSIGN_PASSWORD"
)

// maxFile bounds keys, trusted roots and signatures.
const maxFile = 1 << 20

// ReadFile reads a file that a person named: a key, a trusted root, a signature.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &refusal.Error{Err: err, Kind: refusal.Usage}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, &refusal.Error{Err: fmt.Errorf("%s: larger than %s", path, bundle.Bytes(maxFile)), Kind: refusal.Usage}
	}
	return text, nil
}

// ReadSecret reads a private key or a password. A file that others may read is
// refused: who could read it may sign. What is no file, as a shell's <(…), has no
// mode that says anything. chmod is the path as a shell takes it.
func ReadSecret(path, chmod string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &refusal.Error{Err: err, Kind: refusal.Usage}
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, &refusal.Error{
			Err:  fault(ErrKeyMode, nil, "%s: others than its owner may use it (mode %04o)", path, mode.Perm()),
			Kind: refusal.Usage, Advice: "chmod 600 " + chmod + "; whoever could read it so far may know it",
		}
	}
	return ReadFile(path)
}

func readKeyFile(path string) ([]byte, error) {
	text, err := ReadFile(path)
	if c := (*refusal.Error)(nil); errors.As(err, &c) && c.Advice == "" {
		c.Advice = "name a file with a key; `kubexm keys generate` makes a pair"
	}
	return text, err
}

// refused says what is wrong with a file that a person named as a key.
func refused(path string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, ErrKeyFile):
		advice = "a public key is cosign.pub, a private one cosign.key: `kubexm keys generate` makes both"
	case errors.Is(err, ErrPassword):
		advice = "is " + PasswordVariable + ", " + CosignPasswordVariable + " or --key-password-file that key's password?"
	}
	return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: advice}
}

// TrustFile trusts the public key at path.
func TrustFile(path string) (*Trust, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	trust, err := TrustKey(text)
	if err != nil {
		return nil, refused(path, err)
	}
	return trust, nil
}

// OpenKey opens the private key at path. password is asked for once the file is seen to
// be a private key that others cannot read; chmod is as of ReadSecret.
func OpenKey(path, chmod string, password func() ([]byte, error)) (*Signer, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("PUBLIC KEY")) || !bytes.Contains(text, []byte("PRIVATE KEY")) {
		_, err := LoadSigner(text, nil) // refused without a question for its password
		return nil, refused(path, err)
	}
	if text, err = ReadSecret(path, chmod); err != nil {
		return nil, err
	}
	word, err := password()
	if err != nil {
		return nil, err
	}
	s, err := LoadSigner(text, word)
	if err != nil {
		return nil, refused(path, err)
	}
	return s, nil
}

// CreatePair makes a pair of keys in two files that must not be there yet.
func CreatePair(private, public string, password []byte) error {
	pair, err := Generate(password)
	if err != nil {
		return err
	}
	if err := createFile(private, pair.Private, 0o600); err != nil {
		return err
	}
	if err := createFile(public, pair.Public, 0o644); err != nil {
		return errors.Join(err, os.Remove(private))
	}
	return nil
}

// WritePublic writes the public half of a key to a file that must not be there yet.
func (s *Signer) WritePublic(path string) error {
	text, err := s.PublicKey()
	if err != nil {
		return err
	}
	return createFile(path, text, 0o644)
}

// createFile writes a file that must not be there yet, whole or not at all.
func createFile(path string, content []byte, mode os.FileMode) error {
	err := durable.Create(path, content, mode)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "choose another name"}
	}
	return err
}

// rootAge is how old a trusted root may be before a warning says so: Sigstore
// changes its keys about once a year.
const rootAge = 180 * 24 * time.Hour

// PolicyOf is the policy of who trusts t, with a version of kubexm. warn is told what the
// person should know.
func PolicyOf(t manifest.BundleTrust, version string, warn func(string)) (bundle.Policy, error) {
	var v Verifier
	for _, path := range t.Keys {
		trust, err := TrustFile(path)
		if err != nil {
			return bundle.Policy{}, err
		}
		v = append(v, trust)
	}
	if t.CertificateIdentity != "" {
		trust, err := trustIdentityFile(t, warn)
		if err != nil {
			return bundle.Policy{}, err
		}
		v = append(v, trust)
	}
	// Who names a key or an identity wants a signature.
	p := bundle.Policy{AllowUnsigned: t.AllowUnsigned && len(v) == 0, Kubexm: version}
	if len(v) > 0 {
		p.Verifier = v
	}
	return p, nil
}

func trustIdentityFile(t manifest.BundleTrust, warn func(string)) (*Trust, error) {
	info, err := os.Stat(t.TrustedRoot)
	if err != nil {
		return nil, &refusal.Error{Err: fmt.Errorf("trusted root: %w", err), Kind: refusal.Usage, Advice: "carry in what `cosign trusted-root` or TUF gives: trusted_root.json"}
	}
	text, err := ReadFile(t.TrustedRoot)
	if err != nil {
		return nil, err
	}
	trust, err := TrustIdentity(text, Identity{Name: t.CertificateIdentity, Issuer: t.CertificateOIDCIssuer})
	if err != nil {
		return nil, refused(t.TrustedRoot, err)
	}
	if age := time.Since(info.ModTime()); age > rootAge {
		warn(fmt.Sprintf("%s is %d days old: keys that were withdrawn since still count, newer ones do not", t.TrustedRoot, int(age.Hours()/24)))
	}
	return trust, nil
}
