package pki

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Store stores pairs as NAME.crt and NAME.key in one folder.
type Store struct{ Dir string }

// Locked runs f while it holds an exclusive lock of the folder, across processes: the
// steps of all hosts share the folder.
func (s Store) Locked(f func() error) error {
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	l := s.lock()
	if err := l.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", s.Dir, err)
	}
	return errors.Join(f(), l.Unlock())
}

// LockedContext is Locked for functions that take long: it stops waiting for the lock when ctx
// ends.
func (s Store) LockedContext(ctx context.Context, f func() error) error {
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	l := s.lock()
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return fmt.Errorf("lock %s: %w", s.Dir, err)
	}
	return errors.Join(f(), l.Unlock())
}

// lockPoll is the polling interval for a lock.
const lockPoll = 100 * time.Millisecond

func (s Store) lock() *flock.Flock {
	return flock.New(filepath.Join(s.Dir, ".lock"), flock.SetPermissions(0o600))
}

// Authority returns the CA of that name, and creates it if it does not exist.
func (s Store) Authority(name, commonName string, now time.Time) (p Pair, err error) {
	// A CA is never replaced, and complete when its certificate exists. A thousand hosts that ask for it
	// at once need not wait for each other.
	if p, err = s.load(name); !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	err = s.Locked(func() error {
		p, err = s.authority(name, commonName, now)
		return err
	})
	return p, err
}

func (s Store) authority(name, commonName string, now time.Time) (Pair, error) {
	p, err := s.load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	if p, err = NewAuthority(commonName, now); err != nil {
		return Pair{}, err
	}
	return s.create(name, p)
}

// Leaf returns the certificate of that name. It creates one if there is none, or if the
// existing one no longer matches r: see Pair.Matches.
func (s Store) Leaf(name string, ca Pair, r Request, now time.Time) (p Pair, err error) {
	err = s.Locked(func() error {
		p, err = s.leaf(name, ca, r, now)
		return err
	})
	return p, err
}

// LeafFrom is Leaf for a certificate that may have been created from another workdir host.
// If the store has none, found returns the certificate in use, which is stored if it
// matches r. found returns fs.ErrNotExist if there is none.
func (s Store) LeafFrom(name string, ca Pair, r Request, now time.Time, found func() (cert, key []byte, err error)) (Pair, error) {
	_, err := s.load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s.Leaf(name, ca, r, now)
	}
	cert, key, err := found()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if p, derr := Decode(cert, key); err == nil && derr == nil && p.Matches(r, ca, now) {
		if err := s.Import(name, p); err != nil {
			return Pair{}, err
		}
	}
	return s.Leaf(name, ca, r, now)
}

// Import stores a pair that was created on another machine. It does not overwrite an
// existing pair of that name.
func (s Store) Import(name string, p Pair) error {
	return s.Locked(func() error {
		_, err := s.load(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err = s.create(name, p)
		return err
	})
}

func (s Store) leaf(name string, ca Pair, r Request, now time.Time) (Pair, error) {
	p, err := s.load(name)
	if err == nil && p.Matches(r, ca, now) {
		return p, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if p, err = ca.Issue(r, now); err != nil {
		return Pair{}, err
	}
	return p, s.replace(name, p)
}

func (s Store) path(name, suffix string) string { return filepath.Join(s.Dir, name+suffix) }

func (s Store) load(name string) (Pair, error) {
	cert, err := os.ReadFile(s.path(name, ".crt"))
	if err != nil {
		return Pair{}, fmt.Errorf("certificate %s: %w", name, err)
	}
	key, err := os.ReadFile(s.path(name, ".key"))
	if err != nil {
		return Pair{}, fmt.Errorf("key of %s: %w", name, err)
	}
	p, err := Decode(cert, key)
	if err != nil {
		return Pair{}, fmt.Errorf("%s: %w", s.path(name, ".crt"), err)
	}
	return p, nil
}

// create writes a new pair. The store must be locked: concurrent runs must not create two
// CAs of one name. The key is written first, so that a certificate always has its key.
func (s Store) create(name string, p Pair) (Pair, error) {
	cert, key, err := p.Encode()
	if err != nil {
		return Pair{}, err
	}
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return Pair{}, err
	}
	// An interrupted creation leaves a key without a certificate.
	if err := os.Remove(s.path(name, ".key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if err := durable.Create(s.path(name, ".key"), key, 0o600); err != nil {
		return Pair{}, err
	}
	return p, durable.WriteFile(s.path(name, ".crt"), cert, 0o644)
}

// replace replaces a leaf. It removes the certificate first and writes it last: a crash in
// between leaves no certificate, and the leaf is created again.
func (s Store) replace(name string, p Pair) error {
	for _, suffix := range []string{".crt", ".key"} {
		if err := os.Remove(s.path(name, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := s.create(name, p)
	return err
}

// CertificatePEM returns p's certificate in PEM format.
func (p Pair) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
}

// Encode returns p in PEM format: the certificate, and the key as PKCS #8.
func (p Pair) Encode() (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		return nil, nil, err
	}
	return p.CertificatePEM(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Decode parses the result of Encode. It is an error if the key does not belong to the
// certificate.
func Decode(cert, key []byte) (Pair, error) {
	cb, _ := pem.Decode(cert)
	kb, _ := pem.Decode(key)
	if cb == nil || kb == nil || cb.Type != "CERTIFICATE" {
		return Pair{}, errors.New("not a certificate and a key in PEM format")
	}
	c, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return Pair{}, err
	}
	k, err := x509.ParsePKCS8PrivateKey(kb.Bytes)
	if err != nil {
		return Pair{}, err
	}
	ec, ok := k.(*ecdsa.PrivateKey)
	if !ok || !ec.PublicKey.Equal(c.PublicKey) {
		return Pair{}, errors.New("the key does not belong to the certificate")
	}
	return Pair{Certificate: c, Key: ec}, nil
}
