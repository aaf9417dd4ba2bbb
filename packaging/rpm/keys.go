package rpm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/mensylisir/kubexm/packaging"
)

// maxKeys is how long a file of keys may be, in bytes.
const maxKeys = 4 << 20

// Keys are public keys that packages or metadata are signed with.
type Keys struct{ list openpgp.EntityList }

// Empty tells that there is no key.
func (k Keys) Empty() bool { return len(k.list) == 0 }

// ParseKeys reads public keys, armored as "rpm --import" takes them, several one
// after the other, or binary.
func ParseKeys(content []byte) (Keys, error) {
	begin := []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")
	if !bytes.Contains(content, begin) {
		list, err := openpgp.ReadKeyRing(bytes.NewReader(content))
		if err == nil && len(list) == 0 {
			err = errNoKey
		}
		return Keys{list}, err
	}
	var k Keys
	for rest := content[bytes.Index(content, begin):]; len(rest) > 0; {
		next := len(rest)
		if i := bytes.Index(rest[1:], begin); i >= 0 {
			next = i + 1
		}
		list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(rest[:next]))
		if err != nil {
			return Keys{}, err
		}
		k.list, rest = append(k.list, list...), rest[next:]
	}
	if k.Empty() {
		return Keys{}, errNoKey
	}
	return k, nil
}

var errNoKey = errors.New("there is no key in it")

// LoadKeys reads the keys that a repository names.
func LoadKeys(ctx context.Context, web packaging.Web, r Repository) (Keys, error) {
	var k Keys
	for _, url := range r.Keys {
		var content []byte
		err := place{Web: web}.open(ctx, url, all(&content, maxKeys))
		if err == nil {
			var more Keys
			more, err = ParseKeys(content)
			k.list = append(k.list, more.list...)
		}
		if err != nil {
			return Keys{}, fmt.Errorf("key %s of repository %s: %w", url, r.ID, err)
		}
	}
	return k, nil
}

// verify looks whether an armored or binary signature is one of these keys over
// content, at a time when both are valid.
func (k Keys) verify(content, signature []byte, now time.Time) error {
	config := &packet.Config{Time: func() time.Time { return now }}
	check := openpgp.CheckDetachedSignature
	if bytes.HasPrefix(bytes.TrimSpace(signature), []byte("-----BEGIN")) {
		check = openpgp.CheckArmoredDetachedSignature
	}
	_, err := check(k.list, bytes.NewReader(content), bytes.NewReader(signature), config)
	return err
}
