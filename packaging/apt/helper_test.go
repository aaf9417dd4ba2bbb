package apt

import (
	"bytes"
	"encoding/hex"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/mensylisir/kubexm/packaging"
)

func hexed(b []byte) string { return hex.EncodeToString(b) }

// text gives what a folder's InRelease says.
func (s *site) text(t *testing.T, dir string) []byte {
	t.Helper()
	text, _, _, err := clearSigned(s.files[path.Join(dir, "InRelease")])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// detach makes a Release and a Release.gpg of an InRelease.
func (s *site) detach(t *testing.T, dir string, armored bool) {
	t.Helper()
	text := s.text(t, dir)
	delete(s.files, path.Join(dir, "InRelease"))
	sign := openpgp.DetachSign
	if armored {
		sign = openpgp.ArmoredDetachSign
	}
	var b bytes.Buffer
	if err := sign(&b, s.keys[0], bytes.NewReader(text), at(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.files[path.Join(dir, "Release")], s.files[path.Join(dir, "Release.gpg")] = text, b.Bytes()
}

// names gives the packages that go by a name.
func names(a *Archive, name string) string {
	var out []string
	for _, p := range a.Universe.Find(packaging.Relation{Name: name}) {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}
