package apt

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/klauspost/compress/zstd"
)

// then is when everything here takes place.
var then = time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *packet.Config {
	return &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return then.Add(d) }}
}

// newKey makes a key, a year before then.
func newKey(t *testing.T, c *packet.Config) *openpgp.Entity {
	t.Helper()
	if c == nil {
		c = at(-365 * 24 * time.Hour)
	}
	e, err := openpgp.NewEntity("archive", "", "archive@example.com", c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// public gives the armored public half of keys.
func public(t *testing.T, keys ...*openpgp.Entity) string {
	t.Helper()
	var out bytes.Buffer
	for _, k := range keys {
		w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Serialize(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// site is an archive on a server of this process.
type site struct {
	t     *testing.T
	keys  []*openpgp.Entity
	files map[string][]byte // by path
	asked []string
	url   string
}

func newSite(t *testing.T) *site {
	s := &site{t: t, keys: []*openpgp.Entity{newKey(t, nil)}, files: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.Path)
	b, ok := s.files[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(b)
}

// Open is a Web as simple as can be.
func (s *site) Open(ctx context.Context, url string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return answer.Body, nil
	case http.StatusNotFound:
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %w", url, fs.ErrNotExist)
	}
	_ = answer.Body.Close()
	return nil, fmt.Errorf("%s: %s", url, answer.Status)
}

// bookworm is what its Release says first.
const bookworm = "Origin: Debian\nLabel: Debian\nSuite: oldstable\nVersion: 12.9\nCodename: bookworm\nDate: Wed, 20 May 2026 10:00:00 UTC\n" +
	"Acquire-By-Hash: yes\nNo-Support-for-Architecture-all: Packages\nArchitectures: all amd64 arm64\nComponents: main contrib\n"

// publish puts indices into a folder, each in some packings, and a signed
// Release over them.
func (s *site) publish(dir, head string, indices map[string]string, packings ...string) {
	s.t.Helper()
	if len(packings) == 0 {
		packings = []string{".gz"}
	}
	var sums strings.Builder
	list := func(name string, b []byte) {
		fmt.Fprintf(&sums, " %x %d %s\n", sha256.Sum256(b), len(b), name)
	}
	for _, name := range slices.Sorted(maps.Keys(indices)) {
		list(name, []byte(indices[name]))
		for _, packing := range packings {
			b := packed(s.t, indices[name], packing)
			if packing != "" {
				list(name+packing, b)
			}
			s.files[path.Join(dir, name+packing)] = b
		}
	}
	s.sign(dir, head+"SHA256:\n"+sums.String())
}

// sign puts a release beside what it lists, as InRelease.
func (s *site) sign(dir, text string) {
	s.t.Helper()
	s.files[path.Join(dir, "InRelease")] = cleartext(s.t, text, at(-time.Hour), s.keys...)
}

// cleartext signs a text.
func cleartext(t *testing.T, text string, c *packet.Config, keys ...*openpgp.Entity) []byte {
	t.Helper()
	var private []*packet.PrivateKey
	for _, k := range keys {
		private = append(private, k.PrivateKey)
	}
	var out bytes.Buffer
	w, err := clearsign.EncodeMulti(&out, private, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

// packed packs a text; xz, for which there is no writer, by its command.
func packed(t *testing.T, text, packing string) []byte {
	t.Helper()
	switch packing {
	case ".gz":
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	case ".zst":
		e, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll([]byte(text), nil)
	case ".xz":
		if _, err := exec.LookPath("xz"); err != nil {
			t.Skip("there is no xz here")
		}
		c := exec.CommandContext(t.Context(), "xz", "-9")
		c.Stdin = strings.NewReader(text)
		b, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return []byte(text)
}

// source is the site's own bookworm, whose key stands beside it.
func (s *site) source() Source {
	return Source{URI: s.url + "/debian", Suite: "bookworm", Components: []string{"main"}, SignedBy: Keys{Inline: public(s.t, s.keys...)}}
}

func (s *site) request(sources ...Source) Request {
	return Request{Sources: sources, Arch: "amd64", Keyrings: []string{}, Now: then}
}

// stanzaOf writes a record; more are further lines.
func stanzaOf(name, version string, more ...string) string {
	arch := "amd64"
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nFilename: pool/%s_%s_%s.deb\nSize: 100\nSHA256: %x\n%s\n",
		name, version, arch, name, strings.ReplaceAll(version, ":", "%3a"), arch, sha256.Sum256([]byte(name+version)), strings.Join(append(more, ""), "\n"))
}

// write puts a file into a folder of the test's own.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
