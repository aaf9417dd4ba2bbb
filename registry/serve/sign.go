package serve

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// PublicKey is the path of the key that the repositories of packages are signed with.
const PublicKey = packagesRoot + "kubexm.asc"

// ErrKey means that a file is not an OpenPGP signing key.
var ErrKey = errors.New("not a single OpenPGP private key that can sign, armored or binary")

// Key signs repositories of packages.
type Key struct{ entity *openpgp.Entity }

// ReadKey reads an OpenPGP private key as exported by gpg. It calls password if the key is
// encrypted.
func ReadKey(text []byte, password func() ([]byte, error)) (*Key, error) {
	read := openpgp.ReadKeyRing
	if bytes.Contains(text, []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(text))
	if err != nil {
		return nil, errors.Join(ErrKey, err)
	}
	if len(keys) != 1 || keys[0].PrivateKey == nil {
		return nil, ErrKey
	}
	e := keys[0]
	if e.PrivateKey.Encrypted {
		p, err := password()
		if err != nil {
			return nil, err
		}
		if err := e.DecryptPrivateKeys(p); err != nil {
			return nil, errors.Join(ErrKey, err)
		}
	}
	k := &Key{e}
	if _, err := k.signing(); err != nil {
		return nil, err
	}
	return k, nil
}

// Fingerprint returns the fingerprint of the key as gpg prints it.
func (k *Key) Fingerprint() string {
	return strings.ToUpper(hex.EncodeToString(k.entity.PrimaryKey.Fingerprint))
}

// signing returns the key or subkey that is valid for signing now.
func (k *Key) signing() (*packet.PrivateKey, error) {
	s, ok := k.entity.SigningKey(time.Now())
	if !ok || s.PrivateKey == nil || s.PrivateKey.Encrypted {
		return nil, ErrKey
	}
	return s.PrivateKey, nil
}

// clear returns a clear-signed text, as apt reads it from InRelease.
func (k *Key) clear(text []byte) ([]byte, error) {
	key, err := k.signing()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := clearsign.Encode(&out, key, nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// detached returns the detached signature of a text, as apt and dnf read it.
func (k *Key) detached(text []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, k.entity, bytes.NewReader(text), nil); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// public returns the armored public key.
func (k *Key) public() ([]byte, error) {
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(k.entity.Serialize(w), w.Close()); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// sign generates the signatures of all repositories of packages, and serves them next to the
// signed files: InRelease and Release.gpg of a Release, repomd.xml.asc of a repomd.xml. It does
// not replace files of the bundle with such a name.
func (h *Handler) sign(ctx context.Context, k *Key) error {
	made := map[string][]byte{}
	for _, name := range h.paths.list {
		b := h.paths.blobs[name]
		base := path.Base(name)
		if !strings.HasPrefix(name, packagesRoot) || base != "Release" && base != "repomd.xml" {
			continue
		}
		var text bytes.Buffer
		if err := h.read(ctx, piece{digest: "sha256:" + b.SHA256, size: b.Size}, span{0, b.Size}, &text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		detached, err := k.detached(text.Bytes())
		if err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
		if base == "repomd.xml" {
			made[name+".asc"] = detached
			continue
		}
		made[name+".gpg"] = detached
		if made[path.Dir(name)+"/InRelease"], err = k.clear(text.Bytes()); err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
	}
	if len(made) == 0 {
		return nil
	}
	var err error
	if made[PublicKey], err = k.public(); err != nil {
		return err
	}
	maps.DeleteFunc(made, func(name string, _ []byte) bool { _, ok := h.paths.blobs[name]; return ok })
	h.paths.made = made
	h.paths.list = slices.Sorted(func(yield func(string) bool) {
		for _, names := range [][]string{h.paths.list, slices.Collect(maps.Keys(made))} {
			for _, name := range names {
				if !yield(name) {
					return
				}
			}
		}
	})
	return nil
}
