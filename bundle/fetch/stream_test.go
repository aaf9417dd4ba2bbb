package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// sink keeps what it receives, up to a number of bytes.
type sink struct {
	b     []byte
	room  int
	reset int
}

func newSink() *sink { return &sink{room: 1 << 30} }

func (s *sink) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, 10_000)
	for {
		k, err := r.Read(buf)
		if len(s.b)+k > s.room {
			return n, &fs.PathError{Op: "write", Path: "x.partial", Err: syscall.ENOSPC}
		}
		s.b = append(s.b, buf[:k]...)
		n += int64(k)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (s *sink) Have() int64 { return int64(len(s.b)) }

func (s *sink) Digest() string {
	sum := sha256.Sum256(s.b)
	return hex.EncodeToString(sum[:])
}

func (s *sink) Reset() error {
	s.b = nil
	s.reset++
	return nil
}

// TestStreamContinuesASink: the beginning may be of an earlier process, right or wrong.
func TestStreamContinuesASink(t *testing.T) {
	content := noise(1, 300<<10)
	for name, c := range map[string]struct {
		have  []byte
		sent  int64
		reset int
	}{
		"nothing":              {nil, 300 << 10, 0},
		"a beginning":          {content[:100_001], 300<<10 - 100_001, 0},
		"everything":           {content, 0, 0},
		"a wrong beginning":    {noise(2, 100_000), 300<<10 - 100_000 + 300<<10, 1},
		"all, and it is wrong": {noise(2, 300<<10), 300 << 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, served(content, `"a"`))
			o := options(t, u)
			p := newProgress()
			o.Progress = p
			to := newSink()
			to.b = append(to.b, c.have...)
			a := plainFile(content)
			if err := client(t, o).StreamArtifact(a)(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			u.Close() // it has counted then
			if string(to.b) != string(content) || to.reset != c.reset || u.bytesSent() != c.sent {
				t.Errorf("%d bytes, %d sent, %d resets", len(to.b), u.bytesSent(), to.reset)
			}
			p.mustCount(t, a.ID, int64(len(content)))
		})
	}
}

// TestStreamIntoAFullSink: what fails on this machine is not tried again.
func TestStreamIntoAFullSink(t *testing.T) {
	content := noise(1, 300<<10)
	u := serve(t, served(content, `"a"`))
	to := newSink()
	to.room = 100_000
	err := client(t, options(t, u)).StreamArtifact(plainFile(content))(t.Context(), to)
	if !errors.Is(err, syscall.ENOSPC) || u.asked(http.MethodGet) != 1 {
		t.Errorf("%v after %d requests", err, u.asked(http.MethodGet))
	}
}

// TestWhatIsStreamed: only what needs nothing but to be written.
func TestWhatIsStreamed(t *testing.T) {
	c := client(t, options(t, serve(t, status(404))))
	sum := strings.Repeat("a", 64)
	file := manifest.Artifact{ID: "x", Kind: manifest.Binary, Address: "https://example.com/x", SHA256: sum, Size: 1}
	archive, chart, local, unpinned := file, file, file, file
	archive.Archive, chart.Kind, local.Address, unpinned.SHA256 = "tar.gz", manifest.Chart, "./x", ""
	for name, got := range map[string]bool{
		"an archive": c.StreamArtifact(archive) != nil, "a chart": c.StreamArtifact(chart) != nil, "a file of this machine": c.StreamArtifact(local) != nil,
		"a file without a digest": c.StreamArtifact(unpinned) != nil, "generated metadata": c.StreamMember(file, manifest.Member{Path: "Packages", SHA256: sum}) != nil,
		"a package of this machine": c.StreamMember(file, manifest.Member{Package: "x", Address: "file:///x", SHA256: sum}) != nil,
		"a manifest":                c.StreamContent(manifest.ImagePin{}, Content{Digest: digest.FromString("x").String(), Role: ManifestRole}) != nil,
	} {
		if got {
			t.Errorf("%s is streamed", name)
		}
	}
	if c.StreamArtifact(file) == nil || c.StreamMember(file, manifest.Member{Package: "x", Address: "https://example.com/x.deb", SHA256: sum}) == nil ||
		c.StreamContent(manifest.ImagePin{}, Content{Digest: digest.FromString("x").String(), Role: LayerRole}) == nil {
		t.Error("a file, a package or a layer is not streamed")
	}
}
