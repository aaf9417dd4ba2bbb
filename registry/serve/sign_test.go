package serve

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"github.com/mensylisir/kubexm/registry/registrytest"
)

// signingKey makes a key, and gives its public part with armor.
func signingKey(t *testing.T) (*Key, []byte) {
	t.Helper()
	key, err := ReadKey(private(t, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.public()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// private is an OpenPGP private key with armor, locked with a password if there is one.
func private(t *testing.T, password []byte) []byte {
	t.Helper()
	e, err := openpgp.NewEntity("packages of a site", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != nil {
		if err := e.EncryptPrivateKeys(password, nil); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SerializePrivateWithoutSigning(w, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRepositoriesAreSigned: what apt and dnf look for beside a repository's own files
// is there, good, of the very bytes that are served, and listed with them.
func TestRepositoriesAreSigned(t *testing.T) {
	key, public := signingKey(t)
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(public))
	if err != nil || ring[0].PrivateKey != nil {
		t.Fatalf("%v", err)
	}
	w := registrytest.NewContent("")
	w.Debs(map[string]string{"Release": "Suite: x\n- dashed\n", "repodata/repomd.xml": "<repomd/>\n", "pool/a.deb": "a"})
	h := handler(t, open(t, w), Options{Key: key})
	const at = "/packages/debian-12/amd64/"
	get := func(path string) []byte {
		resp, body := answered(t, h, path)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
		return []byte(body)
	}
	for text, signature := range map[string]string{"Release": "Release.gpg", "repodata/repomd.xml": "repodata/repomd.xml.asc"} {
		if _, err := openpgp.CheckArmoredDetachedSignature(ring, bytes.NewReader(get(at+text)), bytes.NewReader(get(at+signature)), nil); err != nil {
			t.Errorf("%s: %v", signature, err)
		}
	}
	block, rest := clearsign.Decode(get(at + "InRelease"))
	if block == nil || len(bytes.TrimSpace(rest)) > 0 || string(block.Plaintext) != "Suite: x\n- dashed\n" {
		t.Fatalf("InRelease: %+v", block)
	}
	if _, err := block.VerifySignature(ring, nil); err != nil {
		t.Errorf("InRelease: %v", err)
	}
	if !bytes.Equal(get(PublicKey), public) {
		t.Error("another public key is served")
	}
	if list := string(get(at)); !strings.Contains(list, at+"InRelease") || !strings.Contains(list, at+"pool/a.deb") {
		t.Errorf("the list lacks something:\n%s", list)
	}
	// Without a key nothing of it is there.
	plain := handler(t, open(t, w), Options{})
	for _, path := range []string{at + "InRelease", PublicKey} {
		if resp, _ := answered(t, plain, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

func TestKeysForPackages(t *testing.T) {
	locked := private(t, []byte("a password"))
	_, public := signingKey(t)
	for name, c := range map[string]struct {
		text, password []byte
		refused        bool
	}{
		"locked":         {locked, []byte("a password"), false},
		"wrong password": {locked, []byte("another"), true},
		"a public one":   {public, nil, true},
		"none":           {[]byte("text"), nil, true},
		"half of one":    {locked[:len(locked)/2], nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := ReadKey(c.text, func() ([]byte, error) { return c.password, nil })
			if errors.Is(err, ErrKey) != c.refused || (k == nil) != c.refused {
				t.Errorf("%v, %v", k, err)
			}
			if k != nil && len(k.Fingerprint()) != 40 {
				t.Errorf("fingerprint %s", k.Fingerprint())
			}
		})
	}
	asked := errors.New("no terminal")
	if _, err := ReadKey(locked, func() ([]byte, error) { return nil, asked }); !errors.Is(err, asked) {
		t.Errorf("%v", err)
	}
}
