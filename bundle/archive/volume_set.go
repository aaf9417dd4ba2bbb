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

// volumeSet reads an archive across its volumes, as if it were one file.
type volumeSet struct {
	base  string // the archive's own path, without a volume's number
	table *VolumeTable
	files []*os.File
}

// openVolumes opens all volumes of the archive called base and looks whether
// each is there, as long as it should be, and begins as it should.
func openVolumes(base string) (*volumeSet, error) {
	t, err := readTable(base)
	if err != nil {
		return nil, err
	}
	s := &volumeSet{base: base, table: t}
	var errs []error
	for i := range t.Volumes {
		if err := t.glance(base, i); err != nil {
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

// advice says what can be done about n volumes that are not right.
func (t *VolumeTable) advice(base, names string, n int) string {
	if n <= len(t.Parity) {
		return "carry " + names + " again, or mend from parity: kubexm bundle repair " + base + volumeSuffix(0)
	}
	return "carry " + names + " again"
}

// adviseAll gives findings about several volumes the advice that fits them
// together.
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

// wrong is a finding about volume i of the archive called base.
func (t *VolumeTable) wrong(base string, i int, detail string) *Error {
	name := filepath.Base(base) + t.all()[i].Name
	return &Error{Code: ErrVolume, Volume: name, Offset: noOffset, Detail: detail, Advice: t.advice(base, name, 1)}
}

// glance looks at volume i without reading it: presence, size, first bytes.
func (t *VolumeTable) glance(base string, i int) error {
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
		return t.wrong(base, i, t.whose(head, i))
	}
	if size < v.Size {
		return t.wrong(base, i, "the volume was cut: "+byteCount(size)+" of "+byteCount(v.Size))
	}
	if size > v.Size {
		return t.wrong(base, i, "the volume goes on after its "+byteCount(v.Size))
	}
	return nil
}

// headOf gives the checksum of a volume's first bytes, and its size without
// the copy of the table.
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

// headSum is the checksum of the beginning of a volume.
func headSum(b []byte) string {
	d := xxhash.New()
	_, _ = d.Write(b[:min(len(b), headProbe)]) // a hash never fails
	return hexSum(d)
}

// whose says what a volume is that begins with other bytes than it should.
func (t *VolumeTable) whose(head string, i int) string {
	for j, v := range t.all() {
		if j != i && v.Head == head {
			return "the file holds volume " + v.Name + " of this bundle: its name is wrong"
		}
	}
	return "the volume is of another bundle, or damaged: it begins with other bytes"
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
				return n, s.table.wrong(s.base, int(i), "the volume became shorter while it was read")
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

// where names the volume in a finding about member m, which may be nil.
func (s *volumeSet) where(m *Member, err error) error {
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

// suspects reads the volumes that members with findings lie in, and gives what
// is wrong with them: a member's digest alone does not say which of its volumes
// is damaged.
func (s *volumeSet) suspects(ctx context.Context, members []Member, found []error) []error {
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

// verifyVolume reads volume i to its end and compares all of it with the table.
func (t *VolumeTable) verifyVolume(ctx context.Context, base string, i int, progress func(int64)) (err error) {
	if err := t.glance(base, i); err != nil {
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
		return t.wrong(base, i, "the volume is damaged: its content is "+got)
	}
	if i < len(t.Volumes) {
		return nil
	}
	if c, err := readCopy(base + v.Name); err != nil || string(c.encode()) != string(t.encode()) {
		return t.wrong(base, i, "the copy of the table in the volume is damaged")
	}
	return nil
}
