package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// volumeSet reads an archive in volumes as if it were one file.
type volumeSet struct {
	base  string // the archive's own path, without a volume's number
	table *VolumeTable
	files []*os.File
}

// openVolumes opens all volumes of the archive called base and checks that each exists with
// the expected size and first bytes.
func openVolumes(base string) (*volumeSet, error) {
	t, err := readTable(base)
	if err != nil {
		return nil, err
	}
	s := &volumeSet{base: base, table: t}
	var errs []error
	for i := range t.Volumes {
		if err := t.inspect(base, i); err != nil {
			errs = append(errs, err)
			continue
		}
		f, err := os.Open(base + volumeSuffix(i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.files = append(s.files, f)
	}
	if len(errs) > 0 {
		t.adviseAll(base, errs)
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

// advice returns what the user can do about n missing or damaged volumes.
func (t *VolumeTable) advice(base, names string, n int) string {
	if n <= len(t.Parity) {
		return "copy " + names + " again, or rebuild from parity: kubexm bundle repair " + base + volumeSuffix(0)
	}
	return "copy " + names + " again"
}

// adviseAll sets the advice of findings about several volumes: it depends on their number.
func (t *VolumeTable) adviseAll(base string, errs []error) {
	var found []*Error
	var names []string
	for _, err := range errs {
		var e *Error
		if errors.As(err, &e) {
			found, names = append(found, e), append(names, e.Volume)
		}
	}
	for _, e := range found {
		e.Advice = t.advice(base, strings.Join(names, ", "), len(names))
	}
}

// wrong returns a finding about volume i of the archive called base.
func (t *VolumeTable) wrong(base string, i int, detail string) *Error {
	name := filepath.Base(base) + t.all()[i].Name
	return &Error{Code: ErrVolume, Volume: name, Offset: noOffset, Detail: detail, Advice: t.advice(base, name, 1)}
}

// inspect checks volume i without reading all of it: presence, size, first bytes.
func (t *VolumeTable) inspect(base string, i int) error {
	v := t.all()[i]
	fi, err := os.Stat(base + v.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return t.wrong(base, i, "the volume is missing")
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return t.wrong(base, i, "not a regular file")
	}
	head, size, err := t.headOf(base+v.Name, fi.Size(), i)
	if err != nil {
		return err
	}
	if head != v.Head && size >= min(headProbe, v.Size) {
		return t.wrong(base, i, t.describeMismatch(head, i))
	}
	if size < v.Size {
		return t.wrong(base, i, "the volume is truncated: "+byteCount(size)+" of "+byteCount(v.Size))
	}
	if size > v.Size {
		return t.wrong(base, i, "the volume is longer than its "+byteCount(v.Size))
	}
	return nil
}

// headOf returns the checksum of a volume's first bytes, and its size without the copy of
// the table.
func (t *VolumeTable) headOf(path string, size int64, i int) (_ string, _ int64, err error) {
	if i >= len(t.Volumes) {
		size -= int64(len(t.encode()) + copyTail)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, min(headProbe, max(size, 0)))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return "", 0, err
	}
	return headSum(b), size, nil
}

// headSum returns the checksum of the first bytes of a volume.
func headSum(b []byte) string {
	d := xxhash.New()
	_, _ = d.Write(b[:min(len(b), headProbe)]) // a hash never fails
	return hexSum(d)
}

// describeMismatch describes a volume whose first bytes differ from the table.
func (t *VolumeTable) describeMismatch(head string, i int) string {
	for j, v := range t.all() {
		if j != i && v.Head == head {
			return "the file contains volume " + v.Name + " of this bundle: its name is wrong"
		}
	}
	return "the volume belongs to another bundle or is damaged: its first bytes differ"
}

// ReadAt implements io.ReaderAt across the volumes.
func (s *volumeSet) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		if at >= s.table.Size {
			return n, io.EOF
		}
		i := at / s.table.VolumeSize
		in := at - i*s.table.VolumeSize
		v := s.table.Volumes[i]
		want := p[n:min(int64(len(p)), int64(n)+v.Size-in)]
		k, err := s.files[i].ReadAt(want, in)
		n += k
		if k < len(want) {
			if err == io.EOF {
				return n, s.table.wrong(s.base, int(i), "the volume was truncated while it was read")
			}
			return n, err
		}
	}
	return n, nil
}

// Close closes every volume.
func (s *volumeSet) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// addVolume adds the volume to a finding about entry m, which may be nil.
func (s *volumeSet) addVolume(m *Member, err error) error {
	var e *Error
	if s == nil || !errors.As(err, &e) || e.Volume != "" {
		return err
	}
	from, to := e.Offset, e.Offset
	if from < 0 && m != nil {
		from, to = m.Offset, m.Offset+m.Length-1
	}
	if from < 0 {
		return err
	}
	clamp := func(off int64) int {
		return int(min(off, s.table.Size-1) / s.table.VolumeSize)
	}
	named := *e
	first, last := filepath.Base(s.base)+volumeSuffix(clamp(from)), filepath.Base(s.base)+volumeSuffix(clamp(to))
	switch {
	case clamp(to) == clamp(from):
		named.Volume = first
	case clamp(to) == clamp(from)+1:
		named.Volume = first + " or " + last
	default:
		named.Volume = first + " to " + last
	}
	named.Advice = s.table.advice(s.base, named.Volume, 1)
	return &named
}

// damagedVolumes reads the volumes that contain entries with findings, and returns the findings
// about these volumes: an entry's digest alone does not show which volume is damaged.
func (s *volumeSet) damagedVolumes(ctx context.Context, members []Member, found []error) []error {
	if s == nil {
		return nil
	}
	var errs []error
	next := int64(0)
	for i, m := range members {
		if found[i] == nil {
			continue
		}
		last := (m.Offset + m.Length - 1) / s.table.VolumeSize
		for v := max(next, m.Offset/s.table.VolumeSize); v <= last; v++ {
			if err := s.table.verifyVolume(ctx, s.base, int(v), nil); err != nil {
				errs = append(errs, err)
			}
			next = v + 1
		}
	}
	return errs
}

// verifyVolume reads volume i completely and compares it with the table.
func (t *VolumeTable) verifyVolume(ctx context.Context, base string, i int, progress func(int64)) (err error) {
	if err := t.inspect(base, i); err != nil {
		return err
	}
	v := t.all()[i]
	f, err := os.Open(base + v.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	r := io.TeeReader(io.NewSectionReader(f, 0, v.Size), meter{ctx.Err, progress})
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, r, make([]byte, pieceSize)); err != nil {
		return err
	}
	if got := digestPrefix + hex.EncodeToString(sum.Sum(nil)); got != v.Digest {
		return t.wrong(base, i, "the volume is damaged: its digest is "+got)
	}
	if i < len(t.Volumes) {
		return nil
	}
	if c, err := readCopy(base + v.Name); err != nil || string(c.encode()) != string(t.encode()) {
		return t.wrong(base, i, "the copy of the table in the volume is damaged")
	}
	return nil
}
