package upstream

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// whole reads c from its beginning to its end.
func whole(t *testing.T, c Content) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := copyTo(&b, c); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != c.Size() {
		t.Fatalf("%d bytes, size says %d", b.Len(), c.Size())
	}
	return b.Bytes()
}

func TestContentIsTheSameAtEveryOffset(t *testing.T) {
	gz := func(c Content) Content {
		g, err := compress(c)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	tape, err := archive([]entry{{name: "a/b/c", mode: 0o755, body: program("c", 70_001)}, {name: "d", mode: 0o644, body: text("")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Content{
		"program":        program("x", 3*block+17),
		"packed":         packed("x", 2*block),
		"empty":          program("x", 0),
		"chain":          concat(text("head"), text(""), program("x", 9_999), text("tail")),
		"nothing":        concat(),
		"tar":            tape,
		"gzip":           gz(tape),
		"gzip of blocks": gz(packed("y", 2*storedMax)),
		"gzip of none":   gz(text("")),
	} {
		t.Run(name, func(t *testing.T) {
			want := whole(t, c)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				off := rng.Int64N(c.Size() + 2)
				p := make([]byte, rng.IntN(3*block))
				n, err := c.ReadAt(p, off)
				rest := int(max(c.Size()-off, 0))
				if n != min(len(p), rest) {
					t.Fatalf("ReadAt(%d bytes, %d) gave %d", len(p), off, n)
				}
				if (n < len(p)) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
					t.Fatalf("ReadAt(%d bytes, %d) gave %d, %v", len(p), off, n, err)
				}
				if n > 0 && !bytes.Equal(p[:n], want[off:off+int64(n)]) {
					t.Fatalf("ReadAt(%d bytes, %d) differs from the whole", len(p), off)
				}
			}
		})
	}
}

// The digests of the stand-ins are part of what tests and goldens hold: they
// must be the same on every machine and with every Go.
func TestContentNeverChanges(t *testing.T) {
	g, err := compress(concat(text("head"), packed("b", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Content{
		"0dcf3ab0d058bb9969bb4e76c8569592a6692de610563eac5aee5161ec4f16d0": program("a", 100_000),
		"43f357eb2d87116a28c8a109eeb353607ba95ec4b9e70d7c6e3129fff4f4fd97": g,
	} {
		if got, err := sha256Of(c); err != nil || got != want {
			t.Errorf("sha256 %s, %v; want %s", got, err, want)
		}
	}
}

func TestCompressIsGzip(t *testing.T) {
	inner := concat(text("head"), program("x", 200_000))
	g, err := compress(inner)
	if err != nil {
		t.Fatal(err)
	}
	raw := whole(t, g)
	if got := fmt.Sprintf("%x", sha256.Sum256(raw)); got != g.digest {
		t.Errorf("digest %s, content has %s", g.digest, got)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	var out bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(h, &out), r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), whole(t, inner)) || hex.EncodeToString(h.Sum(nil)) != g.content {
		t.Error("gunzip gives something else")
	}
}

func TestArchiveIsTar(t *testing.T) {
	tape, err := archive([]entry{
		{name: "./bin/one", mode: 0o755, body: text("1")},
		{name: "./bin/two", mode: 0o644, body: program("2", 1024)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(bytes.NewReader(whole(t, tape)))
	var got string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%s %o %d\n", h.Name, h.Mode, n)
	}
	const want = "./ 755 0\n./bin/ 755 0\n./bin/one 755 1\n./bin/two 644 1024\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgramsCompressAsProgramsDo(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	ratio := func(c Content) float64 {
		b := whole(t, c)
		return float64(len(enc.EncodeAll(b, nil))) / float64(len(b))
	}
	if r := ratio(program("x", 1<<20)); r < 0.5 || r > 0.75 {
		t.Errorf("a program is compressed to %.2f of its size", r)
	}
	if r := ratio(packed("x", 1<<20)); r < 0.999 {
		t.Errorf("packed content is compressed to %.2f of its size", r)
	}
}
