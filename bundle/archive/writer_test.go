package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/kubexm/testdata/fair"
)

func TestLayoutMatchesBytes(t *testing.T) {
	s := newSample(edges, []int{5, 600, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 5})
	s.add(nil, false) // the same digest as the first edge
	if _, err := NewLayout(s.oci, s.index, s.head, s.blobs); !errors.Is(err, ErrDuplicate) {
		t.Fatalf("a digest twice: %v", err)
	}
	s.blobs = s.blobs[:len(s.blobs)-1]
	path := s.file(t)
	l := s.layout(t)
	b := read(t, path)
	if int64(len(b)) > l.MaxSize() {
		t.Errorf("%d bytes, MaxSize said %d", len(b), l.MaxSize())
	}
	planned := l.Members()
	r := mustOpen(t, path)
	found := r.Members()
	if len(found) != len(planned) {
		t.Fatalf("%d members, planned %d", len(found), len(planned))
	}
	end := int64(0)
	for i, m := range found {
		p := planned[i]
		if m.Name != p.Name || m.Size != p.Size || m.Digest != p.Digest || m.Stored() != p.Stored() {
			t.Errorf("member %d is %+v, planned %+v", i, m, p)
		}
		if p.Stored() && m != p {
			t.Errorf("stored member %d is %+v, planned %+v", i, m, p)
		}
		if !p.Stored() && end < l.StoredEnd() {
			t.Errorf("%s begins at %d, before StoredEnd %d", m.Name, end, l.StoredEnd())
		}
		if m.Offset != end {
			t.Errorf("%s begins at %d, not %d", m.Name, m.Offset, end)
		}
		end += m.Length
		// Each member's frames decode, alone, to its part of the tar.
		dec, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		tar, err := dec.DecodeAll(b[m.Offset:m.Offset+m.Length], nil)
		dec.Close()
		if err != nil || int64(len(tar)) != tarBlock+m.Size+paddingLen(m.Size) {
			t.Errorf("%s decodes to %d bytes: %v", m.Name, len(tar), err)
		}
		if want, ok := s.content[m.Digest]; ok && !bytes.Equal(tar[tarBlock:tarBlock+m.Size], want) {
			t.Errorf("%s decodes to other content", m.Name)
		}
	}
	if err := r.Verify(t.Context(), 2, nil); err != nil {
		t.Error(err)
	}
}

func TestMaxSizeIsExactWithoutCompression(t *testing.T) {
	s := newSample(edges, nil)
	if got, want := int64(len(read(t, s.file(t)))), s.layout(t).MaxSize(); got != want {
		t.Errorf("%d bytes, MaxSize said %d", got, want)
	}
}

func TestMaxSizeHoldsForNoise(t *testing.T) {
	s := newSample(nil, nil)
	for i, n := range []int{1, 300, chunkSize, chunkSize + 1, 2*chunkSize + blockSize} {
		s.add(noise(n, uint64(i)), true)
	}
	if got, bound := int64(len(read(t, s.file(t)))), s.layout(t).MaxSize(); got > bound {
		t.Errorf("%d bytes, MaxSize said %d", got, bound)
	}
}

// TestSameBytes writes one content under everything that must not matter.
func TestSameBytes(t *testing.T) {
	s := newSample([]int{0, 10, blockSize + 1, 3 * pieceSize}, []int{1, 900, 4*chunkSize + 3, chunkSize})
	dir := t.TempDir()
	var want []byte
	was, random := runtime.GOMAXPROCS(0), fair.Rand(t)
	defer runtime.GOMAXPROCS(was)
	for _, procs := range []int{1, 2} {
		runtime.GOMAXPROCS(procs)
		for _, workers := range []int{1, 2, 8} {
			random.Shuffle(len(s.blobs), func(i, j int) { s.blobs[i], s.blobs[j] = s.blobs[j], s.blobs[i] })
			path := filepath.Join(dir, "x.tar.zst")
			s.write(t, path, workers, random.Perm(len(s.blobs)))
			got := read(t, path)
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("GOMAXPROCS %d, %d workers: other bytes", procs, workers)
			}
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestEncoderHasNoMemory holds the premise of same bytes for any number of
// workers: what an encoder did before changes nothing.
func TestEncoderHasNoMemory(t *testing.T) {
	used, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		data := text(1+i*97001%chunkSize, uint64(i))
		if i%3 == 0 {
			copy(data, noise(len(data)/2, uint64(i)))
		}
		fresh, err := newEncoder()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(used.EncodeAll(data, nil), fresh.EncodeAll(data, nil)) {
			t.Fatalf("input %d: a used encoder gives other bytes", i)
		}
	}
}

func TestWriteStoredConcurrently(t *testing.T) {
	sizes := make([]int, 40)
	for i := range sizes {
		sizes[i] = 1 + i*50021
	}
	s := newSample(sizes, []int{chunkSize * 3})
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	w, err := Create(path, s.layout(t), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.WriteCompressed(t.Context(), s.open); err != nil {
			t.Error(err)
		}
	})
	for _, b := range s.blobs {
		if b.Compress {
			continue
		}
		wg.Go(func() {
			if err := w.WriteStored(t.Context(), b.Digest, iotest.HalfReader(bytes.NewReader(s.content[b.Digest]))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := w.Close(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := check(t, path); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(read(t, path), read(t, s.file(t))) {
		t.Error("other bytes than written one after another")
	}
}

func TestBadBlobsCanBeRetried(t *testing.T) {
	s := newSample([]int{300000, 10}, []int{chunkSize + 10, 3*chunkSize + 10})
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	w, err := Create(path, s.layout(t), WriteOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	big := s.blobs[0].Digest
	good := s.content[big]
	flipped := bytes.Clone(good)
	flipped[200000] ^= 4
	broken := errors.New("the line went dead")
	for _, c := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"short", bytes.NewReader(good[:len(good)-1]), ErrSize},
		{"long", io.MultiReader(bytes.NewReader(good), strings.NewReader("x")), ErrSize},
		{"flipped", bytes.NewReader(flipped), ErrDigest},
		{"empty", strings.NewReader(""), ErrSize},
		{"broken", io.MultiReader(bytes.NewReader(good[:9]), iotest.ErrReader(broken)), broken},
	} {
		if err := w.WriteStored(t.Context(), big, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := w.WriteStored(t.Context(), digestOf([]byte("other")), strings.NewReader("other")); !errors.Is(err, ErrUnexpected) {
		t.Errorf("unknown blob: %v", err)
	}
	if err := w.Close(t.Context(), s.open); !errors.Is(err, ErrMissing) {
		t.Errorf("close too early: %v", err)
	}
	if got := w.Missing(); len(got) != 2 {
		t.Errorf("missing %v", got)
	}
	for _, b := range s.blobs[:2] {
		if err := w.WriteStored(t.Context(), b.Digest, bytes.NewReader(s.content[b.Digest])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteStored(t.Context(), big, bytes.NewReader(good)); !errors.Is(err, ErrDuplicate) {
		t.Errorf("a second time: %v", err)
	}
	// Noise leaves more behind than what is right takes in the end.
	// Each of the compressed ones fails in several ways, in the order of the file.
	slices.SortFunc(s.blobs[2:], func(a, b Blob) int { return strings.Compare(a.Digest, b.Digest) })
	for _, b := range s.blobs[2:] {
		for _, bad := range [][]byte{nil, s.content[b.Digest][:chunkSize], append(bytes.Clone(s.content[b.Digest]), 1), noise(int(b.Size), 9)} {
			err := w.Close(t.Context(), func(_ context.Context, d string) (io.ReadCloser, error) {
				if d == b.Digest {
					return io.NopCloser(bytes.NewReader(bad)), nil
				}
				return s.open(t.Context(), d)
			})
			if !errors.Is(err, ErrSize) && !errors.Is(err, ErrDigest) {
				t.Errorf("bad compressed blob: %v", err)
			}
		}
	}
	if err := w.Close(t.Context(), s.open); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), read(t, s.file(t))) {
		t.Error("other bytes than without faults")
	}
	if err := w.Abort(); err != nil {
		t.Errorf("abort after close: %v", err)
	}
}

func TestInterruptedWriter(t *testing.T) {
	s := newSample([]int{9 * blockSize}, []int{5 * chunkSize})
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	w, err := Create(path, s.layout(t), WriteOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := s.blobs[0].Digest
	if err := w.WriteStored(ctx, d, bytes.NewReader(s.content[d])); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := w.WriteStored(t.Context(), d, bytes.NewReader(s.content[d])); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx, s.open); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if err := w.WriteStored(t.Context(), d, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after abort: %v", err)
	}
	if err := w.Close(t.Context(), s.open); err == nil {
		t.Error("closed after abort")
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	s := newSample([]int{1}, nil)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	w, err := Create(path, s.layout(t), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Create(path, s.layout(t), WriteOptions{})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second writer: %v", err)
	}
	other, err := Create(filepath.Join(dir, "y.tar.zst"), s.layout(t), WriteOptions{})
	if err != nil {
		t.Errorf("another path: %v", err)
	} else if err := other.Abort(); err != nil {
		t.Error(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	s.write(t, path, 1, []int{0})
	if err := check(t, path); err != nil {
		t.Error(err)
	}
}

func TestManyWritersOneWins(t *testing.T) {
	s := newSample([]int{1000}, nil)
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	for range 20 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				w, err := Create(path, s.layout(t), WriteOptions{})
				if err != nil {
					if !errors.Is(err, ErrBusy) {
						t.Error(err)
					}
					return
				}
				d := s.blobs[0].Digest
				if err := w.WriteStored(t.Context(), d, bytes.NewReader(s.content[d])); err != nil {
					t.Error(err)
				}
				if err := w.Close(t.Context(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := check(t, path); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

func TestCreateRefusesBadInput(t *testing.T) {
	good := digestOf([]byte("x"))
	for _, c := range []struct {
		name  string
		blobs []Blob
		head  [][]byte
		want  Code
	}{
		{"no algorithm", []Blob{{Digest: good[7:]}}, nil, ErrInput},
		{"upper case", []Blob{{Digest: "sha256:" + strings.ToUpper(good[7:])}}, nil, ErrInput},
		{"short", []Blob{{Digest: good[:70]}}, nil, ErrInput},
		{"other algorithm", []Blob{{Digest: "sha512:" + good[7:]}}, nil, ErrInput},
		{"negative", []Blob{{Digest: good, Size: -1}}, nil, ErrLimit},
		{"huge", []Blob{{Digest: good, Size: maxBlob + 1}}, nil, ErrLimit},
		{"twice", []Blob{{Digest: good, Size: 1}, {Digest: good, Size: 1, Compress: true}}, nil, ErrDuplicate},
		{"head again", []Blob{{Digest: good, Size: 1}}, [][]byte{[]byte("x")}, ErrDuplicate},
		{"head too large", nil, [][]byte{make([]byte, maxHeadBlob+1)}, ErrLimit},
		{"too many", make([]Blob, maxMembers), nil, ErrLimit},
	} {
		if _, err := NewLayout([]byte("{}"), []byte("{}"), c.head, c.blobs); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := NewLayout(make([]byte, maxOCILayout+1), nil, nil, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("oci-layout too large: %v", err)
	}
	if _, err := Create(t.TempDir(), newSample(nil, nil).layout(t), WriteOptions{}); !errors.Is(err, ErrInput) {
		t.Errorf("a directory as target: %v", err)
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "x"), newSample(nil, nil).layout(t), WriteOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
}
