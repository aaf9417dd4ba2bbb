package upstream

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Signer signs package repositories.
type Signer struct{ entity *openpgp.Entity }

// NewSigner creates a key that is valid from a given time.
func NewSigner(since time.Time) (*Signer, error) {
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return since }}
	e, err := openpgp.NewEntity("archive", "", "archive@example.com", config)
	if err != nil {
		return nil, err
	}
	return &Signer{entity: e}, nil
}

// Public returns the armored public key.
func (s *Signer) Public() ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		return nil, err
	}
	if err := s.entity.Serialize(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

// WriteApt writes a signed repository into dir, for the apt source "deb ADDRESS CODENAME
// main". It has the architectures of the packages, or amd64 and arm64 if all packages are
// architecture-independent. Existing files in dir stay, as in an updated mirror.
func (s *Signer) WriteApt(dir string, suite Suite, packages ...Deb) error {
	indices := map[string]*bytes.Buffer{} // by architecture
	for _, d := range packages {
		if a := d.arch(); a != "all" && indices[a] == nil {
			indices[a] = &bytes.Buffer{}
		}
	}
	if len(indices) == 0 {
		indices["amd64"], indices["arm64"] = &bytes.Buffer{}, &bytes.Buffer{}
	}
	for _, d := range packages {
		content, err := d.Bytes()
		if err != nil {
			return fmt.Errorf("package %s: %w", d.Name, err)
		}
		at := path.Join("pool", "main", d.Name[:1], d.Name, d.File())
		if err := put(dir, at, content); err != nil {
			return err
		}
		for arch, b := range indices {
			if d.arch() == "all" || d.arch() == arch {
				b.WriteString(d.stanza(at, content) + "\n")
			}
		}
	}
	return s.release(dir, suite, indices)
}

// release writes the indices and the signed InRelease file.
func (s *Signer) release(dir string, suite Suite, indices map[string]*bytes.Buffer) error {
	var archs []string
	for a := range indices {
		archs = append(archs, a)
	}
	slices.Sort(archs)
	var sums strings.Builder
	dists := path.Join("dists", suite.Codename)
	for _, arch := range archs {
		text := indices[arch].Bytes()
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		folder := path.Join("main", "binary-"+arch)
		for _, f := range []struct {
			name string
			body []byte
		}{{"Packages", text}, {"Packages.gz", packed.Bytes()}} {
			sum := fmt.Sprintf("%x", sha256.Sum256(f.body))
			if err := put(dir, path.Join(dists, folder, f.name), f.body); err != nil {
				return err
			}
			if err := put(dir, path.Join(dists, folder, "by-hash", "SHA256", sum), f.body); err != nil {
				return err
			}
			fmt.Fprintf(&sums, " %s %d %s\n", sum, len(f.body), path.Join(folder, f.name))
		}
	}
	head := fmt.Sprintf("Origin: Debian\nLabel: Debian\nSuite: stable\nVersion: %s\nCodename: %s\nDate: %s\n", suite.Version, suite.Codename, stamp(suite.Date))
	if !suite.ValidUntil.IsZero() {
		head += "Valid-Until: " + stamp(suite.ValidUntil) + "\n"
	}
	head += "Acquire-By-Hash: yes\nArchitectures: " + strings.Join(archs, " ") + "\nComponents: main\nSHA256:\n"
	var b bytes.Buffer
	w, err := clearsign.EncodeMulti(&b, []*packet.PrivateKey{s.entity.PrivateKey}, &packet.Config{Time: func() time.Time { return suite.Date }})
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(head + sums.String())); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return put(dir, path.Join(dists, "InRelease"), append(b.Bytes(), '\n'))
}

func stamp(t time.Time) string { return t.UTC().Format("Mon, 02 Jan 2006 15:04:05 UTC") }

// put writes a file below dir, and creates its folders.
func put(dir, name string, content []byte) error {
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return writeFile(name, content)
}
