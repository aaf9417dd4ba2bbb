package apt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

const (
	armorBegin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	armorEnd   = "-----END PGP PUBLIC KEY BLOCK-----"
)

// SystemKeyrings returns the paths of Debian's repository keys; etc is the configuration
// folder, usually /etc.
func SystemKeyrings(etc string) []string {
	return []string{"/usr/share/keyrings", filepath.Join(etc, "apt/trusted.gpg.d"), filepath.Join(etc, "apt/trusted.gpg")}
}

// keyring contains keys and their sources.
type keyring struct {
	keys   openpgp.EntityList
	looked []string
}

// keyrings reads each keyring once.
type keyrings struct {
	system []string // folders and files
	given  []string // armored blocks
	read   map[string]openpgp.EntityList
}

// of returns the keys that are trusted for a source.
func (k *keyrings) of(s Source) (keyring, error) {
	var r keyring
	for _, file := range s.SignedBy.Files {
		keys, err := k.file(file)
		if err != nil {
			return r, &Refusal{Repository: s.String(), Reason: ErrNoKeyring, Detail: err.Error(), Advice: "copy the file to this machine, or specify another with signed-by"}
		}
		r.keys, r.looked = append(r.keys, keys...), append(r.looked, file)
	}
	if s.SignedBy.Inline != "" {
		keys, err := parseKeys([]byte(s.SignedBy.Inline))
		if err != nil {
			return r, &Refusal{Repository: s.String(), Reason: ErrNoKeyring, Detail: "the key in the source: " + err.Error()}
		}
		r.keys, r.looked = append(r.keys, keys...), append(r.looked, "the key in the source")
	}
	if prints := s.SignedBy.Fingerprints; len(prints) > 0 {
		all, err := k.all()
		if err != nil {
			return r, err
		}
		for _, e := range all.keys {
			if hasFingerprint(e, prints) {
				r.keys = append(r.keys, e)
			}
		}
		for _, place := range all.looked {
			r.looked = append(r.looked, place+" (only "+strings.Join(prints, " and ")+")")
		}
	}
	if s.SignedBy.none() {
		return k.all()
	}
	return r, nil
}

// all returns the keys of the system's keyrings and the given keys. System files that
// are not keyrings are ignored.
func (k *keyrings) all() (keyring, error) {
	var r keyring
	for _, place := range k.system {
		files := []string{place}
		if entries, err := os.ReadDir(place); err == nil {
			files = nil
			for _, x := range entries {
				if trustedFile(x.Name()) {
					files = append(files, filepath.Join(place, x.Name()))
				}
			}
		}
		r.looked = append(r.looked, place)
		for _, file := range files {
			if keys, err := k.file(file); err == nil {
				r.keys = append(r.keys, keys...)
			}
		}
	}
	for i, block := range k.given {
		keys, err := parseKeys([]byte(block))
		if err != nil {
			return r, fmt.Errorf("key %d of the given keys: %w", i+1, err)
		}
		r.keys = append(r.keys, keys...)
	}
	if len(k.given) > 0 {
		r.looked = append(r.looked, "the given keys")
	}
	return r, nil
}

// trustedFile reports whether a file in a folder of keyrings contains trusted keys.
// Distributions store their removed keys in the same folder.
func trustedFile(name string) bool {
	return (strings.HasSuffix(name, ".gpg") || strings.HasSuffix(name, ".asc")) && !strings.Contains(name, "removed")
}

func (k *keyrings) file(path string) (openpgp.EntityList, error) {
	if keys, ok := k.read[path]; ok {
		return keys, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", path)
	}
	if err != nil {
		return nil, err
	}
	keys, err := parseKeys(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if k.read == nil {
		k.read = map[string]openpgp.EntityList{}
	}
	k.read[path] = keys
	return keys, nil
}

// parseKeys reads keys, binary or in one or more armored blocks.
func parseKeys(b []byte) (openpgp.EntityList, error) {
	if !bytes.Contains(b, []byte(armorBegin)) {
		return openpgp.ReadKeyRing(bytes.NewReader(b))
	}
	var out openpgp.EntityList
	for {
		begin := bytes.Index(b, []byte(armorBegin))
		if begin < 0 {
			return out, nil
		}
		b = b[begin:]
		end := bytes.Index(b, []byte(armorEnd))
		if end < 0 {
			return nil, errors.New("an armored key block has no end")
		}
		end += len(armorEnd)
		keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(b[:end]))
		if err != nil {
			return nil, err
		}
		out, b = append(out, keys...), b[end:]
	}
}

// hasFingerprint reports whether a key or one of its subkeys has one of the fingerprints.
func hasFingerprint(e *openpgp.Entity, prints []string) bool {
	is := func(f []byte) bool { return slices.Contains(prints, strings.ToUpper(hex.EncodeToString(f))) }
	return is(e.PrimaryKey.Fingerprint) || slices.ContainsFunc(e.Subkeys, func(s openpgp.Subkey) bool { return is(s.PublicKey.Fingerprint) })
}
