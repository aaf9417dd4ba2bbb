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

// The environment variables with the password of a private key.
const (
	PasswordVariable       = "KUBEXM_KEY_PASSWORD" //nolint:gosec // the name of one, not a password
	CosignPasswordVariable = "COSIGN_PASSWORD"
)

// maxFile is the maximum size of keys, trusted roots and signatures.
const maxFile = 1 << 20

// ReadFile reads a file that the user specified: a key, a trusted root or a signature.
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

// ReadSecret reads a private key or a password. A regular file that other users can access
// is refused, because they could sign too. Other files, such as a shell's <(…), have no
// meaningful mode. chmod is the path as the user can type it in a shell.
func ReadSecret(path, chmod string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &refusal.Error{Err: err, Kind: refusal.Usage}
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, &refusal.Error{
			Err:  fault(ErrKeyMode, nil, "%s: other users than its owner can access it (mode %04o)", path, mode.Perm()),
			Kind: refusal.Usage, Advice: "chmod 600 " + chmod + "; other users may have read it before",
		}
	}
	return ReadFile(path)
}

func readKeyFile(path string) ([]byte, error) {
	text, err := ReadFile(path)
	if c := (*refusal.Error)(nil); errors.As(err, &c) && c.Advice == "" {
		c.Advice = "specify a file with a key; `kubexm keys generate` creates a key pair"
	}
	return text, err
}

// refused adds advice to an error about a key file.
func refused(path string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, ErrKeyFile):
		advice = "a public key is cosign.pub, a private key is cosign.key: `kubexm keys generate` creates both"
	case errors.Is(err, ErrPassword):
		advice = "is " + PasswordVariable + ", " + CosignPasswordVariable + " or --key-password-file the password of this key?"
	}
	return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: advice}
}

// TrustFile returns the Trust for the public key at path.
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

// OpenKey decrypts the private key at path. password is called only after the file was
// checked to be a private key that other users cannot access; chmod is as in ReadSecret.
func OpenKey(path, chmod string, password func() ([]byte, error)) (*Signer, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("PUBLIC KEY")) || !bytes.Contains(text, []byte("PRIVATE KEY")) {
		_, err := LoadSigner(text, nil) // rejected without asking for a password
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

// CreatePair creates a key pair in two files that must not exist yet.
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

// WritePublic writes the public key to a file that must not exist yet.
func (s *Signer) WritePublic(path string) error {
	text, err := s.PublicKey()
	if err != nil {
		return err
	}
	return createFile(path, text, 0o644)
}

// createFile atomically writes a file that must not exist yet.
func createFile(path string, content []byte, mode os.FileMode) error {
	err := durable.Create(path, content, mode)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "choose another name"}
	}
	return err
}

// rootAge is the age of a trusted root from which a warning is printed: Sigstore changes
// its keys about once a year.
const rootAge = 180 * 24 * time.Hour

// PolicyOf returns the policy for the trust settings t and a version of kubexm. warn
// receives warnings for the user.
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
	// A configured key or identity requires a signature.
	p := bundle.Policy{AllowUnsigned: t.AllowUnsigned && len(v) == 0, Kubexm: version}
	if len(v) > 0 {
		p.Verifier = v
	}
	return p, nil
}

func trustIdentityFile(t manifest.BundleTrust, warn func(string)) (*Trust, error) {
	info, err := os.Stat(t.TrustedRoot)
	if err != nil {
		return nil, &refusal.Error{Err: fmt.Errorf("trusted root: %w", err), Kind: refusal.Usage, Advice: "copy trusted_root.json from `cosign trusted-root` or TUF to this machine"}
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
		warn(fmt.Sprintf("%s is %d days old: keys revoked since then are still accepted, newer keys are not", t.TrustedRoot, int(age.Hours()/24)))
	}
	return trust, nil
}
