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

// Store keeps pairs as NAME.crt and NAME.key in one folder.
type Store struct{ Dir string }

// Locked runs f while nobody else is in a Locked of the same folder, in this
// process or another: the steps of all hosts share what lies in it.
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

// InTurn is Locked for what takes long: whoever waits gives up when ctx ends.
func (s Store) InTurn(ctx context.Context, f func() error) error {
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	l := s.lock()
	if _, err := l.TryLockContext(ctx, waitEach); err != nil {
		return fmt.Errorf("lock %s: %w", s.Dir, err)
	}
	return errors.Join(f(), l.Unlock())
}

// waitEach is the time between two looks at a lock that somebody holds.
const waitEach = 100 * time.Millisecond

func (s Store) lock() *flock.Flock {
	return flock.New(filepath.Join(s.Dir, ".lock"), flock.SetPermissions(0o600))
}

// Authority gives the CA of that name, made now if there is none.
func (s Store) Authority(name, commonName string, now time.Time) (p Pair, err error) {
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

// Leaf gives the certificate of that name, made anew where there is none or
// the one there no longer answers r.
func (s Store) Leaf(name string, ca Pair, r Request, now time.Time) (p Pair, err error) {
	err = s.Locked(func() error {
		p, err = s.leaf(name, ca, r, now)
		return err
	})
	return p, err
}

// LeafFrom is Leaf where the certificate may have been made from another machine:
// found gives the one that is in use, and is asked when there is none here. It
// is kept as long as it answers r.
func (s Store) LeafFrom(name string, ca Pair, r Request, now time.Time, found func() (cert, key []byte, err error)) (Pair, error) {
	_, err := s.load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s.Leaf(name, ca, r, now)
	}
	cert, key, err := found()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if p, derr := Decode(cert, key); err == nil && derr == nil && p.Answers(r, ca, now) {
		if err := s.Take(name, p); err != nil {
			return Pair{}, err
		}
	}
	return s.Leaf(name, ca, r, now)
}

// Take keeps a pair that was made on another machine. One of that name that is
// here stays.
func (s Store) Take(name string, p Pair) error {
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
	if err == nil && p.Answers(r, ca, now) {
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

// create writes a pair that is not there. The store is locked: two runs at once
// must not end with two CAs of one name. The key is written first and the certificate last,
// so that a certificate always has its key.
func (s Store) create(name string, p Pair) (Pair, error) {
	cert, key, err := p.Encode()
	if err != nil {
		return Pair{}, err
	}
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return Pair{}, err
	}
	// A key without a certificate is what an interrupted creation leaves behind.
	if err := os.Remove(s.path(name, ".key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if err := durable.Create(s.path(name, ".key"), key, 0o600); err != nil {
		return Pair{}, err
	}
	return p, durable.WriteFile(s.path(name, ".crt"), cert, 0o644)
}

// replace writes a leaf in place of an older one. The certificate goes first
// and comes last: what a crash leaves in between counts as none, and is made anew.
func (s Store) replace(name string, p Pair) error {
	for _, suffix := range []string{".crt", ".key"} {
		if err := os.Remove(s.path(name, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := s.create(name, p)
	return err
}

// Encode gives p as PEM: the certificate, and the key as PKCS #8.
func (p Pair) Encode() (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Decode reads what Encode wrote. The key has to fit the certificate.
func Decode(cert, key []byte) (Pair, error) {
	cb, _ := pem.Decode(cert)
	kb, _ := pem.Decode(key)
	if cb == nil || kb == nil || cb.Type != "CERTIFICATE" {
		return Pair{}, errors.New("not a certificate and a key in PEM")
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
		return Pair{}, errors.New("the key is not the certificate's")
	}
	return Pair{Certificate: c, Key: ec}, nil
}
