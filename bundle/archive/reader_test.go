package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/kubexm/testdata/fair"
)

func TestReadBack(t *testing.T) {
	s := newSample(edges, []int{5, chunkSize, 2*chunkSize + 5})
	r := mustOpen(t, s.file(t))
	var wg sync.WaitGroup
	for d, want := range s.content {
		wg.Go(func() {
			for _, wrap := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r },
				func(r io.Reader) io.Reader { return struct{ io.Reader }{r} }, // hides WriteTo
				iotest.HalfReader,
			} {
				b, n, err := r.Blob(d)
				if err != nil {
					t.Error(err)
					return
				}
				var got bytes.Buffer
				if _, err := io.Copy(&got, wrap(b)); err != nil {
					t.Error(err)
				}
				if n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%s: other content", d)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
					t.Errorf("read after close: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for name, want := range map[string][]byte{"oci-layout": s.oci, "index.json": s.index} {
		if got, err := r.File(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, h := range s.head {
		b, _, err := r.Blob(digestOf(h))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, h) {
			t.Errorf("a head blob is %q, %v", got, err)
		}
		b.Close()
	}
	for _, d := range []string{"", "sha256:", digestOf([]byte("no")), "kubexm/signatures", "sha512:00"} {
		if _, _, err := r.Blob(d); !errors.Is(err, ErrMissing) {
			t.Errorf("blob %q: %v", d, err)
		}
	}
	if _, err := r.File(slotName); !errors.Is(err, ErrMissing) {
		t.Errorf("the slot as a file: %v", err)
	}
}

// TestEveryByteCounts flips one bit of every byte of an archive and expects verification to
// find it and to report the entry that contains it. It flips only some spaces of the
// signature slot, and only one byte in eleven under the slower race detector.
func TestEveryByteCounts(t *testing.T) {
	s := newSample([]int{0, 700, 512}, []int{1, 3000})
	path := s.file(t)
	b := read(t, path)
	r := mustOpen(t, path)
	members := r.Members()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	slot := members[slices.IndexFunc(members, func(m Member) bool { return m.Name == slotName })]
	spaces := slot.Offset + headLen + int64(len(rawFrameHeader)) + blockHeaderLen
	step := int64(1)
	if testing.Short() {
		step = 11
	}
	random := fair.Rand(t)
	for at := random.Int64N(step); at < int64(len(b)); at += step {
		if at > spaces && at < spaces+blockSize-1 || at > spaces+blockSize+blockHeaderLen && at < slot.Offset+slot.Length-1 {
			if at%4999 >= step {
				continue
			}
		}
		bit := byte(1) << random.IntN(8)
		if _, err := f.WriteAt([]byte{b[at] ^ bit}, at); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(members, func(m Member) bool { return at >= m.Offset && at < m.Offset+m.Length })
		var err error
		switch { // Open reads no member, so one Reader will do for these
		case i < 0 || at < int64(len(rawFrameHeader)):
			err = check(t, path)
		case at%10 == 0:
			err = r.Verify(t.Context(), 2, nil)
		default: // what Verify does for each member
			err = r.verify(t.Context(), &members[i], nil)
		}
		if err == nil {
			t.Fatalf("byte %d, bit %#x: not found", at, bit)
		}
		if i >= 0 && at >= int64(len(rawFrameHeader)) {
			var e *Error
			if !errors.As(err, &e) || e.Member != members[i].Name {
				t.Fatalf("byte %d of %s, bit %#x: %v", at, members[i].Name, bit, err)
			}
			if e.Offset >= 0 && (e.Offset < members[i].Offset || e.Offset >= members[i].Offset+members[i].Length) {
				t.Fatalf("byte %d of %s: found at %d: %v", at, members[i].Name, e.Offset, err)
			}
			if strings.Count(err.Error(), "\n") > 0 {
				t.Fatalf("byte %d of %s: more than one finding: %v", at, members[i].Name, err)
			}
		}
		if _, err := f.WriteAt(b[at:at+1], at); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(t, path); err != nil {
		t.Error(err)
	}
}

// TestFlipsInLargeMembers samples members of many blocks and chunks.
func TestFlipsInLargeMembers(t *testing.T) {
	s := newSample([]int{3*pieceSize + 5}, []int{2*chunkSize + 9})
	path := s.file(t)
	b := read(t, path)
	members := mustOpen(t, path).Members()
	random := fair.Rand(t)
	for range 60 {
		m := members[len(members)-1-random.IntN(2)]
		at := m.Offset + random.Int64N(m.Length)
		if random.IntN(3) == 0 { // the block headers of the stored one
			m = members[len(members)-2]
			at = m.Offset + headLen + int64(len(rawFrameHeader)) + random.Int64N(24)*(blockHeaderLen+blockSize) + random.Int64N(3)
		}
		bad := bytes.Clone(b)
		bad[at] ^= byte(1) << random.IntN(8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if err := check(t, path); !errors.As(err, &e) || e.Member != m.Name {
			t.Errorf("byte %d of %s: %v", at, m.Name, err)
		}
	}
}

func TestSeveralFindings(t *testing.T) {
	s := newSample([]int{1000, 2000}, []int{3000})
	path := s.file(t)
	b := read(t, path)
	members := mustOpen(t, path).Members()
	for _, m := range members[len(members)-3:] {
		b[m.Offset+headLen+20] ^= 1
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	err := check(t, path)
	for _, m := range members[len(members)-3:] {
		if err == nil || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("%s is not named in: %v", m.Name, err)
		}
	}
	// Reading a blob says the same as verifying.
	r := mustOpen(t, path)
	for _, m := range members[len(members)-3:] {
		rc, _, err := r.Blob(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(rc); !errors.Is(err, ErrDigest) && !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", m.Name, err)
		}
		rc.Close()
	}
}

func TestVerifyCountsAndStops(t *testing.T) {
	s := newSample([]int{5000}, []int{6000})
	r := mustOpen(t, s.file(t))
	var mu sync.Mutex
	got, want := int64(0), int64(0)
	if err := r.Verify(t.Context(), 0, func(n int64) { mu.Lock(); got += n; mu.Unlock() }); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Members() {
		want += m.Size
	}
	if got != want {
		t.Errorf("progress said %d bytes of %d", got, want)
	}
}

// TestCut cuts an archive at each hundredth and at each of its last bytes.
func TestCut(t *testing.T) {
	s := newSample([]int{0, 300000}, []int{300000})
	b := read(t, s.file(t))
	path := filepath.Join(t.TempDir(), "cut")
	cuts := []int{}
	for i := range 100 {
		cuts = append(cuts, len(b)*i/100)
	}
	for i := range trailerLen + 20 {
		cuts = append(cuts, len(b)-1-i)
	}
	for _, n := range cuts {
		if err := os.WriteFile(path, b[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := ErrTruncated
		if n < len(rawFrameHeader) {
			want = ErrFormat
		}
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("cut at %d of %d: %v", n, len(b), err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	s := newSample([]int{0, 300}, []int{3000, 500})
	path := s.file(t)
	b := read(t, path)
	members := mustOpen(t, path).Members()
	frameAt := members[len(members)-1].Offset + members[len(members)-1].Length + rawFrameLen(endData)
	slot := slices.IndexFunc(members, func(m Member) bool { return m.Name == slotName })

	// relist writes the file with another index that is right in itself.
	relist := func(change func([]Member) []Member) []byte {
		return appendIndexFrame(bytes.Clone(b[:frameAt]), frameAt, change(slices.Clone(members)))
	}
	retext := func(change func(string) string) []byte {
		index := change(string(appendIndex(nil, members)))
		return append(bytes.Clone(b[:frameAt]), indexFrame([]byte(index), frameAt)...)
	}
	same := func(s string) string { return s }
	if !bytes.Equal(retext(same), b) {
		t.Fatal("the test writes other indexes than the package")
	}
	gap := func(n int) []byte { // a hole before the end, listed
		return appendIndexFrame(slices.Concat(b[:frameAt-rawFrameLen(endData)], make([]byte, n), endFrame()), frameAt+int64(n), members)
	}
	skippable := append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00"), "data"...)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
		want Code
	}{
		{"empty", nil, ErrFormat},
		{"one byte", b[:1], ErrFormat},
		{"gzip", append([]byte("\x1f\x8b\x08\x00"), make([]byte, 5000)...), ErrFormat},
		{"plain tar", append([]byte("oci-layout"), make([]byte, 5000)...), ErrFormat},
		{"other zstd", enc.EncodeAll(make([]byte, 5000), nil), ErrFormat},
		{"other index", append(bytes.Clone(b[:len(b)-1]), '2'), ErrIndex},
		{"trailing byte", append(bytes.Clone(b), 0), ErrTruncated},
		{"trailing line", append(bytes.Clone(b), '\n'), ErrTruncated},
		{"twice", append(bytes.Clone(b), b...), ErrIndex},
		{"second frame", append(bytes.Clone(b), enc.EncodeAll([]byte("more"), nil)...), ErrTruncated},
		{"second skippable frame", append(bytes.Clone(b), skippable...), ErrTruncated},
		{"second index", append(bytes.Clone(b), b[frameAt:]...), ErrIndex},
		{"skippable frame before the index", appendIndexFrame(append(bytes.Clone(b[:frameAt]), skippable...), frameAt+int64(len(skippable)), members), ErrIndex},
		{"hole", gap(7), ErrIndex},
		{"no end", appendIndexFrame(append(bytes.Clone(b[:frameAt-rawFrameLen(endData)]), make([]byte, rawFrameLen(endData))...), frameAt, members), ErrEnd},
		{"blob not listed", relist(func(m []Member) []Member { return m[:len(m)-1] }), ErrIndex},
		{"slot not listed", relist(func(m []Member) []Member { return slices.Delete(m, slot, slot+1) }), ErrOrder},
		{"nothing listed", relist(func([]Member) []Member { return nil }), ErrMissing},
		{"listed twice", relist(func(m []Member) []Member { return append(m, m[len(m)-1]) }), ErrDuplicate},
		{"out of order", relist(func(m []Member) []Member {
			n := len(m)
			m[n-1], m[n-2] = m[n-2], m[n-1]
			return m
		}), ErrOrder},
		{"index.json first", relist(func(m []Member) []Member { m[0], m[1] = m[1], m[0]; return m }), ErrOrder},
		{"bad name", relist(func(m []Member) []Member { m[2].Name = "../../etc/passwd"; return m }), ErrName},
		{"name of another digest", relist(func(m []Member) []Member { m[2].Digest = m[3].Digest; return m }), ErrIndex},
		{"no digest", relist(func(m []Member) []Member { m[0].Digest = ""; return m }), ErrIndex},
		{"slot with digest", relist(func(m []Member) []Member { m[slot].Digest = m[0].Digest; return m }), ErrIndex},
		{"slot of another size", relist(func(m []Member) []Member { m[slot].Size--; return m }), ErrSlot},
		{"negative size", relist(func(m []Member) []Member { m[3].Size = -1; return m }), ErrLimit},
		{"huge size", relist(func(m []Member) []Member { m[len(m)-1].Size = 1 << 60; return m }), ErrLimit},
		{"size and length disagree", relist(func(m []Member) []Member { m[3].Size += tarBlock; return m }), ErrIndex},
		{"shifted", relist(func(m []Member) []Member { m[3].Offset++; return m }), ErrIndex},
		{"head compressed", relist(func(m []Member) []Member { m[2].XXH64 = pendingXXH64; return m }), ErrOrder},
		{"stored behind compressed", relist(func(m []Member) []Member { m[len(m)-1].XXH64 = ""; return m }), ErrOrder},
		{"long checksum", relist(func(m []Member) []Member { m[len(m)-1].XXH64 += "0"; return m }), ErrIndex},
		{"duplicate keys", retext(func(s string) string { return strings.Replace(s, `"size":`, `"size":1,"size":`, 1) }), ErrIndex},
		{"unknown key", retext(func(s string) string { return strings.Replace(s, `"size":`, `"mode":1,"size":`, 1) }), ErrIndex},
		{"other case", retext(func(s string) string { return strings.Replace(s, `"size":`, `"SIZE":`, 1) }), ErrIndex},
		{"space", retext(func(s string) string { return strings.Replace(s, `"size":`, `"size": `, 1) }), ErrIndex},
		{"other format", retext(func(s string) string { return strings.Replace(s, "archive/1", "archive/2", 1) }), ErrIndex},
		{"more lines", retext(func(s string) string { return s + "{}\n" }), ErrIndex},
		{"no last line feed", retext(func(s string) string { return s[:len(s)-1] }), ErrIndex},
		{"member count", retext(func(s string) string { return strings.Replace(s, `"members":`, `"members":1`, 1) }), ErrIndex},
		{"not JSON", retext(func(string) string { return "kubexm\n" }), ErrIndex},
		{"many empty members", retext(func(string) string {
			return `{"format":"kubexm-archive/1","members":10000000}` + "\n" + strings.Repeat("{}\n", 10_000_000)
		}), ErrIndex},
		{"offset elsewhere", bytes.Replace(b, binary.LittleEndian.AppendUint64(nil, uint64(frameAt+skippableLen)), make([]byte, 8), 1), ErrIndex},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(file, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(file)
			if err == nil {
				r.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestSortedRuns holds that blobs are sorted in two runs, and that the second
// begins with the first compressed one.
func TestSortedRuns(t *testing.T) {
	a, b, c := digestOf([]byte("b")), digestOf([]byte("a")), digestOf([]byte("d")) // 3e…, ca…, 18…
	for _, x := range []struct {
		name       string
		stored     []string
		compressed []string
		want       error
	}{
		{"both sorted", []string{a, b}, []string{c}, nil},
		{"one run", nil, []string{c, a, b}, nil},
		{"stored unsorted", []string{b, a}, nil, ErrOrder},
		{"compressed unsorted", nil, []string{b, a}, ErrOrder},
		{"descent before the compressed ones", []string{a, c}, []string{b}, ErrOrder},
		{"descent among the compressed ones", []string{a}, []string{b, c}, ErrOrder},
		{"two descents", []string{b, a}, []string{c}, ErrOrder},
	} {
		members := []Member{smallMember(0, []byte("{}")), smallMember(1, []byte("{}")), {Name: slotName, Size: slotSize}}
		for _, d := range x.stored {
			members = append(members, Member{Name: blobName(d), Digest: d})
		}
		for _, d := range x.compressed {
			members = append(members, Member{Name: blobName(d), Digest: d, XXH64: pendingXXH64})
		}
		if err := checkMembers(members); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, ErrFormat) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Open(fifo); !errors.Is(err, ErrFormat) {
		t.Errorf("a FIFO: %v", err)
	}
}

// TestCompressedMembersRefuse puts other frames in a compressed member's place,
// with an index that is right in itself.
func TestCompressedMembersRefuse(t *testing.T) {
	content := text(5000, 3)
	s := newSample(nil, nil)
	s.add(content, true)
	path := s.file(t)
	b := read(t, path)
	members := mustOpen(t, path).Members()
	m := members[len(members)-1]
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := enc.EncodeAll(content, nil)
	more := enc.EncodeAll(text(5001, 3), nil)
	wide := bytes.Clone(appendRawFrame(nil, content))
	wide[5] = 20 << 3 // a window of 1 GiB
	dict := append([]byte("\x28\xb5\x2f\xfd\x01\x38\x07"), wide[6:]...)
	for _, c := range []struct {
		name   string
		frames []byte
		want   Code
	}{
		{"the same", data, ""},
		{"in pieces", append(enc.EncodeAll(content[:3], nil), enc.EncodeAll(content[3:], nil)...), ""},
		{"too long", more, ErrSize},
		{"too short", enc.EncodeAll(content[:4999], nil), ErrSize},
		{"other content", enc.EncodeAll(make([]byte, 5000), nil), ErrDigest},
		{"bomb", bytes.Repeat(enc.EncodeAll(make([]byte, 8<<20), nil), 100), ErrSize},
		{"nothing", nil, ErrSize},
		{"cut", data[:len(data)-1], ErrFrame},
		{"no zstd", []byte("hello, hello, hello, hello"), ErrFrame},
		{"skippable frame inside", slices.Concat([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00data"), data), ErrFrame},
		{"skippable frame behind", slices.Concat(data, []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00data")), ErrFrame},
		{"wide window", wide, ErrWindow},
		{"dictionary", dict, ErrFrame},
		{"reserved block", []byte("\x28\xb5\x2f\xfd\x00\x38\x07\x00\x00"), ErrFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := slices.Concat(b[:m.Offset+headLen], c.frames, paddingFrame(m.Size))
			end := int64(len(out))
			own := slices.Clone(members)
			last := &own[len(own)-1]
			last.Length = end - m.Offset
			last.XXH64 = xxh(c.frames)
			out = append(out, endFrame()...)
			out = appendIndexFrame(out, int64(len(out)), own)
			file := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(file, out, 0o600); err != nil {
				t.Fatal(err)
			}
			err := check(t, file)
			if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Member != m.Name) {
				t.Errorf("not named: %v", err)
			}
		})
	}
}

// TestNewerFormatIsReported: the error tells users of this version to use a newer one.
func TestNewerFormatIsReported(t *testing.T) {
	path := newSample([]int{300}, nil).file(t)
	b := read(t, path)
	members := mustOpen(t, path).Members()
	last := members[len(members)-1]
	frameAt := last.Offset + last.Length + rawFrameLen(endData)
	index := bytes.Replace(appendIndex(nil, members), []byte(indexFormat), []byte("kubexm-archive/2"), 1)
	for name, file := range map[string][]byte{
		"index":  append(bytes.Clone(b[:frameAt]), indexFrame(index, frameAt)...),
		"format": append(bytes.Clone(b[:len(b)-1]), '2'),
	} {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "this version of kubexm reads") || !strings.Contains(e.Advice, "a newer one") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
