package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// supply gives the content of a sample and counts what is taken of it.
type supply struct {
	*sample
	taken map[string]int64 // bytes, by digest
	whole map[string]int   // how often to the end
	left  int64            // bytes until the end of the world; -1: never
	wrap  func(io.Reader) io.Reader

	backward bool // the compressed blobs come first
	inside   int  // compressed blobs that were found in the archive
}

var errOver = errors.New("the end of the world")

func newSupply(s *sample) *supply {
	return &supply{sample: s, taken: map[string]int64{}, whole: map[string]int{}, left: -1, wrap: func(r io.Reader) io.Reader { return r }}
}

// from reads a blob from an offset on.
func (u *supply) from(digest string, at int64) io.Reader {
	return u.wrap(&supplied{u, digest, bytes.NewReader(u.content[digest][at:])})
}

type supplied struct {
	u      *supply
	digest string
	r      *bytes.Reader
}

func (s *supplied) Read(p []byte) (int, error) {
	if s.u.left == 0 {
		return 0, errOver
	}
	if s.u.left > 0 && int64(len(p)) > s.u.left {
		p = p[:s.u.left]
	}
	n, err := s.r.Read(p)
	s.u.taken[s.digest] += int64(n)
	if s.u.left > 0 {
		s.u.left -= int64(n)
	}
	if s.r.Len() == 0 && n > 0 {
		s.u.whole[s.digest]++
	}
	return n, err
}

// carryOn writes s at path until left bytes were read, continuing what is there. It returns
// what Suspend or Close says, and whether the archive is complete.
func carryOn(t *testing.T, u *supply, path string, o WriteOptions, left int64) (done bool, kept int64) {
	t.Helper()
	u.left = left
	o.Resume, o.Workers = true, 1
	w, err := Create(path, u.layout(t), o)
	if err != nil {
		t.Fatal(err)
	}
	err = u.fill(t.Context(), w)
	if err == nil {
		if err := w.Close(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return true, 0
	}
	if !errors.Is(err, errOver) {
		t.Fatal(err)
	}
	if kept, err = w.Suspend(); err != nil {
		t.Fatal(err)
	}
	return false, kept
}

// fill writes what is missing.
func (u *supply) fill(ctx context.Context, w *Writer) error {
	inside, err := w.RecoverCompressed(ctx)
	if err != nil {
		return err
	}
	u.inside += len(inside)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.WriteStaged(ctx) })
	g.Go(func() error { return u.receive(ctx, w, inside) })
	return g.Wait()
}

func (u *supply) receive(ctx context.Context, w *Writer, inside []string) error {
	blobs := slices.Clone(u.blobs)
	if u.backward {
		slices.Reverse(blobs)
	}
	for _, b := range blobs {
		if slices.Contains(inside, b.Digest) {
			continue
		}
		if done, err := w.Recovered(ctx, b.Digest); err != nil {
			return err
		} else if done {
			continue
		}
		bw, err := w.Blob(ctx, b.Digest)
		if err != nil {
			return err
		}
		if _, err = bw.ReadFrom(u.from(b.Digest, bw.Have())); err == nil && bw.Digest() != b.Digest[len(digestPrefix):] {
			if err = bw.Reset(); err == nil {
				_, err = bw.ReadFrom(u.from(b.Digest, 0))
			}
		}
		if err == nil {
			err = bw.Commit()
		}
		if err := errors.Join(err, bw.Close()); err != nil {
			return err
		}
	}
	return nil
}

// TestSuspendedWriterIsContinued suspends a writer after every so many bytes: no byte of a
// stored blob is read twice, no compressed blob after it was complete, and the bytes are those
// of an undisturbed writer, in one file and in volumes.
func TestSuspendedWriterIsContinued(t *testing.T) {
	s := newSample([]int{0, 10, 5*pieceSize + 77, blockSize, 3 * blockSize}, []int{100, 2*chunkSize + 9, chunkSize})
	want := read(t, s.file(t))
	for name, o := range map[string]WriteOptions{"one file": {}, "volumes": {VolumeOptions: VolumeOptions{VolumeSize: 1 << 20, Parity: 1}}} {
		t.Run(name, func(t *testing.T) {
			u, dir := newSupply(s), t.TempDir()
			u.backward = true
			path := filepath.Join(dir, "x.tar.zst")
			runs := 0
			for done := false; !done; runs++ {
				if runs == 200 {
					t.Fatal("it does not end")
				}
				done, _ = carryOn(t, u, path, o, int64(chunkSize+900_000))
				if !done {
					tear(t, path)
				}
				if names := names(t, dir); done == slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, partialSuffix) }) {
					t.Fatalf("done: %v, in the folder: %v", done, names)
				}
			}
			if runs < 3 || u.inside == 0 {
				t.Errorf("%d runs, %d compressed blobs found in the archive", runs, u.inside)
			}
			for _, b := range s.blobs {
				if !b.Compress && u.taken[b.Digest] != b.Size {
					t.Errorf("%d bytes read of a stored blob of %d", u.taken[b.Digest], b.Size)
				}
				if u.whole[b.Digest] > 2 { // a compressed blob may end in the run that does not write it
					t.Errorf("a blob of %d bytes was read %d times", b.Size, u.whole[b.Digest])
				}
			}
			var got []byte
			if o.VolumeSize > 0 {
				got = joined(t, path+".001")
			} else {
				got = read(t, path)
			}
			if !bytes.Equal(got, want) {
				t.Error("other bytes than without interruptions")
			}
		})
	}
}

// tear leaves the journal as a loss of power may: with a line that is not whole.
func tear(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path+journalSuffix, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"digest":"sha256:0123`)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPartialIsNotBelieved changes each part of a suspended archive and of its journal:
// the bytes are the same in the end.
func TestDamagedPartialIsNotBelieved(t *testing.T) {
	s := newSample([]int{2*pieceSize + 5, blockSize + 1, 900_000}, []int{300_000, chunkSize + 1, 70_000})
	want := read(t, s.file(t))
	suspended := filepath.Join(t.TempDir(), "x.tar.zst")
	u := newSupply(s)
	if done, kept := carryOn(t, u, suspended, WriteOptions{}, 2*pieceSize+5+blockSize+1+600_000); done || kept == 0 {
		t.Fatalf("done %v, %d bytes kept", done, kept)
	}
	compressed := filepath.Join(t.TempDir(), "x.tar.zst")
	u = newSupply(s)
	u.backward = true
	if done, _ := carryOn(t, u, compressed, WriteOptions{}, 300_000+chunkSize+1+70_000+900_000+blockSize+1+700_000); done {
		t.Fatal("nothing is missing")
	}
	if c, err := readClaims(compressed); err != nil || len(c.compressed) == 0 {
		t.Fatalf("no compressed blob is in the archive: %+v, %v", c, err)
	}
	for _, from := range []string{suspended, compressed} {
		partial, journal := read(t, PartialPath(from)), read(t, from+journalSuffix)
		for i := range 60 {
			p, j := bytes.Clone(partial), bytes.Clone(journal)
			what := "nothing"
			at := (len(p) - 1) * i / 59
			switch i % 4 {
			case 1:
				what, p[at] = fmt.Sprintf("byte %d of the archive", at), p[at]^4
			case 2:
				cut := len(j) * i / 60
				what, j = fmt.Sprintf("the journal ends after %d bytes", cut), append(j[:cut:cut], bytes.Repeat([]byte{0}, i)...)
			case 3:
				what = fmt.Sprintf("zeros from byte %d on", at)
				clear(p[at:])
			}
			path := filepath.Join(t.TempDir(), "x.tar.zst")
			if err := errors.Join(os.WriteFile(PartialPath(path), p, 0o600), os.WriteFile(path+journalSuffix, j, 0o600)); err != nil {
				t.Fatal(err)
			}
			if done, _ := carryOn(t, newSupply(s), path, WriteOptions{}, -1); !done || !bytes.Equal(read(t, path), want) {
				t.Fatalf("%s: other bytes", what)
			}
			if left := names(t, filepath.Dir(path)); len(left) != 1 {
				t.Errorf("%s: left behind: %v", what, left)
			}
		}
	}
}

// immutable is FS_IMMUTABLE_FL of linux/fs.h.
const immutable = 0x10

// TestFailedStartKeepsWhatIsThere: a Writer that cannot start loses nothing.
func TestFailedStartKeepsWhatIsThere(t *testing.T) {
	s := newSample([]int{2 * pieceSize, 500}, nil)
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	u := newSupply(s)
	if done, kept := carryOn(t, u, path, WriteOptions{}, 3*blockSize); done || kept == 0 {
		t.Fatalf("done %v, %d bytes kept", done, kept)
	}
	for _, flag := range []int{immutable, 0} {
		f, err := os.Open(path + journalSuffix)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flag)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Skipf("the journal cannot be made read-only: %v", err)
		}
		if flag == 0 {
			break
		}
		if _, err := Create(path, s.layout(t), WriteOptions{Resume: true}); err == nil {
			t.Error("a journal that cannot be written is continued")
		}
	}
	if done, _ := carryOn(t, u, path, WriteOptions{}, -1); !done || u.taken[s.blobs[0].Digest] != s.blobs[0].Size {
		t.Errorf("%d bytes read of a stored blob of %d", u.taken[s.blobs[0].Digest], s.blobs[0].Size)
	}
}

// TestSalvage saves the complete blobs of a suspended archive of another layout.
func TestSalvage(t *testing.T) {
	s := newSample([]int{2 * pieceSize, 500}, []int{chunkSize, 4000, 5000, 6000, 7000, 9 * blockSize})
	for name, o := range map[string]VolumeOptions{"one file": {}, "volumes": {VolumeSize: MinVolumeSize}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.tar.zst")
			u := newSupply(s)
			if done, _ := carryOn(t, u, path, WriteOptions{VolumeOptions: o}, 2*pieceSize+500+chunkSize+22000+9*blockSize-1); done {
				t.Fatal("nothing is missing")
			}
			other := newSample([]int{500}, nil).layout(t)
			left, err := FindUnfinished(path, other, o)
			if err != nil || left == nil || left.Continues() || left.Bytes == 0 || left.Disk == 0 {
				t.Fatalf("%+v, %v", left, err)
			}
			if same, err := FindUnfinished(path, s.layout(t), o); err != nil || !same.Continues() || !same.Has(s.blobs[0].Digest) {
				t.Fatalf("%+v, %v", same, err)
			}
			full := errors.New("full")
			if err := Salvage(path, func(string, int64, io.Reader) error { return full }); !errors.Is(err, full) {
				t.Errorf("a save that fails: %v", err)
			}
			saved := map[string]bool{}
			if err := Salvage(path, func(digest string, size int64, r io.Reader) error {
				b, err := io.ReadAll(r)
				if err == nil && bytes.Equal(b, s.content[digest]) && int64(len(b)) == size {
					saved[digest] = true
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if len(saved) < 3 || !saved[s.blobs[0].Digest] {
				t.Errorf("%d blobs saved", len(saved))
			}
			if left := names(t, filepath.Dir(path)); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestContinueOnAFullDisk: a disk that fills up suspends the writer; with room it goes on.
func TestContinueOnAFullDisk(t *testing.T) {
	s := newSample([]int{400_000}, []int{3 * chunkSize})
	want := read(t, s.file(t))
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1500k"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(dir, "x.tar.zst")
	u := newSupply(s)
	w, err := Create(path, s.layout(t), WriteOptions{Resume: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.fill(t.Context(), w); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("on a disk that is too small: %v", err)
	}
	if kept, err := w.Suspend(); kept < 400_000 || err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("%d bytes kept, %v", kept, err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	if done, _ := carryOn(t, u, path, WriteOptions{}, -1); !done || !bytes.Equal(read(t, path), want) || u.taken[s.blobs[0].Digest] != 400_000 {
		t.Errorf("done %v, %d bytes of the stored blob read", done, u.taken[s.blobs[0].Digest])
	}
}

// FuzzJournal parses any bytes: what is understood reads back the same.
func FuzzJournal(f *testing.F) {
	s := newSample([]int{pieceSize + 5, 700}, []int{300_000})
	path := filepath.Join(f.TempDir(), "x.tar.zst")
	w, err := Create(path, s.layout(f), WriteOptions{Resume: true})
	if err != nil {
		f.Fatal(err)
	}
	if err := newSupply(s).fill(f.Context(), w); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Suspend(); err != nil {
		f.Fatal(err)
	}
	f.Add(read(f, path+journalSuffix))
	f.Add([]byte(`{"format":"kubexm-partial/1","layout":""}` + "\n" + `{"digest":"sha256:` + strings.Repeat("0", 64) + `","prefix":5}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseClaims(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			return
		}
		again, err := parseClaims(bytes.NewReader(b[:c.end]))
		if err != nil || again == nil || again.end != c.end || again.bytes() != c.bytes() {
			t.Errorf("%d bytes understood, then %+v, %v", c.end, again, err)
		}
		if c.bytes() < 0 {
			t.Errorf("%d bytes of content", c.bytes())
		}
	})
}
