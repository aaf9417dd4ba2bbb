package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The fuzz targets below take their input without the 256 KiB of an empty
// signature slot, in two parts, and put it between them: small inputs are
// mutated faster, and where it matters.

// halves cuts b around the slot's data.
func halves(f *testing.F, b []byte, slot []byte) (before, after []byte) {
	f.Helper()
	before, after, found := bytes.Cut(b, slot)
	if !found {
		f.Fatal("no slot")
	}
	return before, after
}

// FuzzOpen opens any bytes. What verifies must read back by digest, and must
// extract to the same content.
func FuzzOpen(f *testing.F) {
	slot := appendRawFrame(nil, emptySlot())
	for _, s := range []*sample{newSample(nil, nil), newSample([]int{0, 600}, nil), newSample(nil, []int{0, 700})} {
		before, after := halves(f, read(f, s.file(f)), slot)
		f.Add(before, after)
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		b := slices.Concat(before, slot, after)
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		if err := r.Verify(t.Context(), 1, nil); err != nil {
			return
		}
		got := make(map[string]string)
		for _, m := range r.Members() {
			if strings.HasPrefix(m.Name, blobPrefix) {
				rc, _, err := r.Blob(m.Digest)
				if err != nil {
					t.Fatal(err)
				}
				c, err := io.ReadAll(rc)
				if err != nil || digestOf(c) != m.Digest {
					t.Fatalf("%s verified but does not read: %v", m.Name, err)
				}
				rc.Close()
				got[m.Name] = string(c)
			}
		}
		dir, err := unpack(t, b, ExtractOptions{})
		if err != nil {
			t.Fatalf("verified but does not extract: %v", err)
		}
		unpacked := files(t, dir)
		maps.DeleteFunc(unpacked, func(name, _ string) bool { return !strings.HasPrefix(name, blobPrefix) })
		if !maps.Equal(got, unpacked) {
			t.Error("extracts to other blobs than it reads")
		}
	})
}

// FuzzExtract extracts any stream: zstd, or a tar that is put into a raw frame
// (few mutations of zstd would get through to the tar). Nothing may stay behind on
// an error, and everything must be what its name says otherwise.
func FuzzExtract(f *testing.F) {
	framed, plain := appendRawFrame(nil, emptySlot()), emptySlot()
	seed := func(b, slot []byte) {
		before, after := halves(f, b, slot)
		f.Add(before, after, len(slot) == len(plain))
	}
	seed(read(f, newSample([]int{0, 600}, []int{700}).file(f)), framed)
	seed(tarOf(f, honest()), plain)
	for _, c := range hostileSequences() {
		if tar := c.tar(f); bytes.Contains(tar, plain) {
			seed(tar, plain)
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte, isTar bool) {
		b := slices.Concat(before, framed, after)
		if isTar {
			b = appendRawFrame(nil, slices.Concat(before, plain, after))
		}
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		err := Extract(t.Context(), bytes.NewReader(b), dir, ExtractOptions{Limit: 1 << 20})
		if err != nil {
			if got := names(t, parent); len(got) != 0 {
				t.Fatalf("left behind %v after %v", got, err)
			}
			return
		}
		for name, content := range files(t, dir) {
			if want := nameDigest(name); want != "" && digestOf([]byte(content)) != want || checkName(name) != nil {
				t.Errorf("extracted %q with other content", name)
			}
		}
	})
}

// FuzzFrameScanner holds the scanner against the decoder: what the scanner
// passes decodes to what the decoder alone gives.
func FuzzFrameScanner(f *testing.F) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(appendRawFrame(nil, text(3000, 1)))
	f.Add(enc.EncodeAll(text(3000, 1), nil))
	f.Add(enc.EncodeAll(make([]byte, 300000), enc.EncodeAll(text(10, 1), nil)))
	f.Add([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00data"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		s := newFrameScanner(bytes.NewReader(b), 64)
		passed, err := io.ReadAll(s)
		if !bytes.HasPrefix(b, passed) || s.offset != int64(len(passed)) {
			t.Fatal("the scanner changed bytes")
		}
		if err == nil && !s.skippable && len(passed) != len(b) {
			t.Fatal("the scanner ended early without saying so")
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("an error without a code: %v", err)
		}
		want, wantErr := decode(bytes.NewReader(b))
		if wantErr == nil && err != nil && !errors.Is(err, ErrWindow) {
			t.Fatalf("the decoder takes it, the scanner says %v", err)
		}
		if err != nil || s.skippable {
			return
		}
		got, gotErr := decode(newFrameScanner(bytes.NewReader(b), 64))
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !bytes.Equal(got, want) {
			t.Fatalf("through the scanner %d bytes, %v; alone %d bytes, %v", len(got), gotErr, len(want), wantErr)
		}
	})
}

// decode gives the first MiB that a decoder makes of r.
func decode(r io.Reader) ([]byte, error) {
	// Hidden, because a decoder treats a bytes.Reader in another way than a stream.
	dec, err := newDecoder(struct{ io.Reader }{r})
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return io.ReadAll(io.LimitReader(dec, 1<<20))
}

// FuzzIndex reads any index under a right checksum. What is accepted is what
// the writer would have written, and lies within the file.
func FuzzIndex(f *testing.F) {
	for _, s := range []*sample{newSample(nil, nil), newSample([]int{0, 600}, []int{700})} {
		f.Add(appendIndex(nil, mustOpen(f, s.file(f)).Members()), int64(300_000))
	}
	f.Fuzz(func(t *testing.T, index []byte, at int64) {
		if members, err := parseIndex(index); err == nil && len(members) > 0 {
			last := members[len(members)-1]
			at = last.Offset + last.Length + rawFrameLen(endData) // or nothing would fit
		}
		if len(index) > maxIndex || at < 0 || at > maxBlob {
			return
		}
		members, err := parseIndexFrame(indexFrame(index, at), at)
		if err != nil {
			return
		}
		end := int64(0)
		for _, m := range members {
			if checkName(m.Name) != nil || m.Size < 0 || m.Length < headLen || m.Offset != end {
				t.Errorf("accepted %+v", m)
			}
			end += m.Length
		}
		if end > at || !bytes.Equal(appendIndex(nil, members), index) {
			t.Errorf("accepted an index of %d bytes before byte %d", end, at)
		}
	})
}

// indexFrame puts any index into a frame that begins at offset.
func indexFrame(index []byte, at int64) []byte {
	frame := binary.LittleEndian.AppendUint32([]byte(skippableMagic), uint32(len(index)+trailerLen))
	frame = append(frame, index...)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(at+skippableLen))
	frame = binary.LittleEndian.AppendUint64(frame, uint64(len(index)))
	sum := sha256.Sum256(index)
	return append(append(frame, sum[:]...), trailerMagic...)
}
