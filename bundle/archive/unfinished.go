package archive

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Unfinished describes the unfinished archive of a path.
type Unfinished struct {
	Bytes int64 // bytes of content in it
	Disk  int64 // bytes of disk that it takes

	claims *claims
	same   bool
}

// FindUnfinished returns what an earlier Writer left at path; nil if there is nothing that a
// Writer of the layout l could continue or Salvage could save. It looks at the journal only.
func FindUnfinished(path string, l *Layout, o VolumeOptions) (*Unfinished, error) {
	c, err := readClaims(path)
	if c == nil || err != nil {
		return nil, err
	}
	u := &Unfinished{Bytes: c.bytes(), claims: c, same: c.head == journalHeadOf(l, o)}
	files := []string{PartialPath(path)}
	if c.head.VolumeSize > 0 {
		if files, err = partialVolumes(path); err != nil {
			return nil, err
		}
	}
	for d := range c.staged {
		files = append(files, stagedPath(path, d))
	}
	for _, name := range files {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err == nil {
			u.Disk += st.Blocks * 512
		}
	}
	return u, nil
}

// Continues reports whether a Writer of the layout continues the unfinished archive.
func (u *Unfinished) Continues() bool { return u != nil && u.same }

// Has reports whether the unfinished archive is said to contain the complete blob.
func (u *Unfinished) Has(digest string) bool {
	if u == nil || !u.same {
		return false
	}
	_, stored := u.claims.stored[digest]
	_, staged := u.claims.staged[digest]
	if stored || staged {
		return true
	}
	for i := range u.claims.compressed {
		if u.claims.compressed[i].Digest == digest {
			return true
		}
	}
	return false
}

// Salvage gives each complete blob of the unfinished archive of path to save, and then
// removes the unfinished archive. save must check the content; a damaged blob is passed over. If
// save fails for another reason, the unfinished archive stays.
func Salvage(path string, save func(digest string, size int64, r io.Reader) error) (err error) {
	lock, err := lockPath(path)
	if err != nil {
		return err
	}
	defer lock.release()
	c, err := readClaims(path)
	if c == nil || err != nil {
		return err
	}
	o := VolumeOptions{VolumeSize: c.head.VolumeSize}
	out, err := newOutput(path, 0, o, true)
	if err != nil {
		return err
	}
	r := &Reader{file: noClose{out}}
	for _, m := range c.complete() {
		b, err := r.open(&m)
		if err == nil {
			err = errors.Join(save(m.Digest, m.Size, b), b.Close())
		}
		var damaged *Error
		if err != nil && !errors.As(err, &damaged) && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("save %s of %s: %w", m.Digest, PartialPath(path), err), out.keep())
		}
	}
	for _, m := range c.staged {
		if err := salvageStaged(path, &m, save); err != nil {
			return errors.Join(fmt.Errorf("save %s of %s: %w", m.Digest, PartialPath(path), err), out.keep())
		}
	}
	return errors.Join(out.discard(), removeJournal(path))
}

// salvageStaged gives a staged blob to save. One that is damaged is passed over.
func salvageStaged(path string, m *Member, save func(string, int64, io.Reader) error) error {
	f, err := os.Open(stagedPath(path, m.Digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	d, err := newDecoder(io.LimitReader(f, m.Length))
	if err != nil {
		return nil //nolint:nilerr // damaged
	}
	defer d.Close()
	content := &framed{d: d}
	if err := save(m.Digest, m.Size, content); err != nil && content.err == nil {
		return err
	}
	return nil
}

// framed keeps the error of a decoder.
type framed struct {
	d   io.Reader
	err error
}

func (f *framed) Read(p []byte) (int, error) {
	n, err := f.d.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// noClose reads an output.
type noClose struct{ io.ReaderAt }

// Close does nothing.
func (noClose) Close() error { return nil }
