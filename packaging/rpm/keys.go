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

// maxKeys is the maximum size of a key file in bytes.
const maxKeys = 4 << 20

// Keys are public keys that packages or metadata are signed with.
type Keys struct{ list openpgp.EntityList }

// Empty reports whether there is no key.
func (k Keys) Empty() bool { return len(k.list) == 0 }

// ParseKeys parses public keys: one or more armored blocks, as accepted by
// "rpm --import", or binary.
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

var errNoKey = errors.New("it contains no key")

// LoadKeys reads the configured keys of a repository.
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

// verify checks that an armored or binary signature over content is by one of the keys,
// and that both are valid at the given time.
func (k Keys) verify(content, signature []byte, now time.Time) error {
	config := &packet.Config{Time: func() time.Time { return now }}
	check := openpgp.CheckDetachedSignature
	if bytes.HasPrefix(bytes.TrimSpace(signature), []byte("-----BEGIN")) {
		check = openpgp.CheckArmoredDetachedSignature
	}
	_, err := check(k.list, bytes.NewReader(content), bytes.NewReader(signature), config)
	return err
}
