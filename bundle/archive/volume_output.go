package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// VolumeOptions specify how an archive is split into volumes.
type VolumeOptions struct {
	VolumeSize int64 // bytes per volume; 0 writes one file
	Parity     int   // number of parity volumes; they can rebuild as many lost or damaged volumes
	// Sealing, if not nil, receives the number of bytes just read while the written volumes
	// are hashed and the parity is computed.
	Sealing func(n int64)
}

// volumeOutput is an output of several files.
type volumeOutput struct {
	base     string
	o        VolumeOptions
	existing bool // partial volumes of an earlier writer are continued

	mu    sync.Mutex
	files []*os.File // the volumes so far; nil if nothing was written to one yet
	made  []*os.File // parity and table
}

// file returns volume i and creates it on the first write.
func (v *volumeOutput) file(i int) (*os.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.files) <= i {
		v.files = append(v.files, nil)
	}
	if v.files[i] == nil {
		f, err := openPart(v.base+volumeSuffix(i), v.existing)
		if err != nil {
			return nil, err
		}
		v.files[i] = f
	}
	return v.files[i], nil
}

// WriteAt implements io.WriterAt across the volumes.
func (v *volumeOutput) WriteAt(p []byte, off int64) (int, error) {
	return v.across(p, off, (*os.File).WriteAt)
}

// ReadAt implements io.ReaderAt across the volumes.
func (v *volumeOutput) ReadAt(p []byte, off int64) (int, error) {
	return v.across(p, off, (*os.File).ReadAt)
}

// across reads or writes p at off, volume by volume.
func (v *volumeOutput) across(p []byte, off int64, do func(*os.File, []byte, int64) (int, error)) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		i := at / v.o.VolumeSize
		in := at - i*v.o.VolumeSize
		f, err := v.file(int(i))
		if err != nil {
			return n, err
		}
		k, err := do(f, p[n:min(int64(len(p)), int64(n)+v.o.VolumeSize-in)], in)
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (v *volumeOutput) reserve(n int64) error {
	for i := 0; n > 0; i++ {
		f, err := v.file(i)
		if err != nil {
			return err
		}
		if err := reserve(f, min(n, v.o.VolumeSize)); err != nil {
			return err
		}
		n -= v.o.VolumeSize
	}
	return nil
}

// publish hashes the volumes, writes parity and table, and renames all files. The first
// volume is renamed last, because users open the archive by its name.
func (v *volumeOutput) publish(ctx context.Context, size int64) error {
	n := int(volumeCount(size, v.o.VolumeSize))
	for i := range v.files {
		f, err := v.file(i)
		if err != nil {
			return err
		}
		if err := f.Truncate(max(0, min(v.o.VolumeSize, size-int64(i)*v.o.VolumeSize))); err != nil {
			return err
		}
	}
	for _, f := range v.files[n:] { // of a failed attempt that wrote more
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return err
		}
	}
	v.files = v.files[:n]
	table, err := v.seal(ctx, size)
	if err != nil {
		return err
	}
	if err := v.clear(); err != nil {
		return err
	}
	names := []string{tableSuffix}
	for _, x := range table.all() {
		names = append(names, x.Name)
	}
	all := append([]*os.File{v.made[len(v.made)-1]}, v.files...)
	all = append(all, v.made[:len(v.made)-1]...)
	for i, f := range all {
		if err := f.Sync(); err != nil {
			return err
		}
		if names[i] == volumeSuffix(0) {
			continue
		}
		if err := os.Rename(f.Name(), v.base+names[i]); err != nil {
			return err
		}
	}
	if err := os.Rename(v.files[0].Name(), v.base+volumeSuffix(0)); err != nil {
		return err
	}
	var errs []error
	for _, f := range all {
		errs = append(errs, f.Close())
	}
	if v.existing { // volumes of an earlier writer, beyond the end
		errs = append(errs, clearParts(v.base))
	}
	return errors.Join(append(errs, durable.SyncDir(filepath.Dir(v.base)))...)
}

// seal writes the table and the parity volumes; the table's file is the last of made.
func (v *volumeOutput) seal(ctx context.Context, size int64) (*VolumeTable, error) {
	for _, f := range v.made { // of a previous attempt
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return nil, err
		}
	}
	v.made = nil
	t := &VolumeTable{Size: size, VolumeSize: v.o.VolumeSize, Volumes: make([]Volume, len(v.files)), Parity: make([]Volume, v.o.Parity)}
	for i := range t.Volumes {
		t.Volumes[i] = Volume{Name: volumeSuffix(i), Size: min(t.VolumeSize, size-int64(i)*t.VolumeSize)}
	}
	for i := range t.Parity {
		t.Parity[i] = Volume{Name: paritySuffix(i), Size: t.Volumes[0].Size}
		f, err := newPart(v.base + paritySuffix(i))
		if err != nil {
			return nil, err
		}
		v.made = append(v.made, f)
		if err := reserve(f, t.Volumes[0].Size); err != nil {
			return nil, err
		}
	}
	if err := t.fill(ctx, v.files, v.made, v.o.Sealing); err != nil {
		return nil, err
	}
	text := t.encode()
	for _, f := range v.made {
		if _, err := f.WriteAt(appendCopy(nil, text), t.Volumes[0].Size); err != nil {
			return nil, err
		}
	}
	f, err := newPart(v.base + tableSuffix)
	if err != nil {
		return nil, err
	}
	v.made = append(v.made, f)
	_, err = f.Write(text)
	return t, err
}

// clear removes the volumes of an existing archive of this name, the first volume first, so
// that no reader sees a mixture of old and new volumes.
func (v *volumeOutput) clear() error {
	old, err := volumeFiles(v.base)
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clearParts removes the partial volumes of a killed writer, with any volume size. The
// caller holds the archive's lock.
func clearParts(base string) error {
	parts, err := partialVolumes(base)
	if err != nil {
		return err
	}
	for _, path := range parts {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// partialVolumes lists the partial files of the volumes of base, of parity and of the table.
func partialVolumes(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		tail, ok := cutBase(e.Name(), filepath.Base(base))
		tail, part := strings.CutSuffix(tail, partialSuffix)
		if ok && part && isVolumeSuffix(tail) {
			out = append(out, filepath.Join(filepath.Dir(base), e.Name()))
		}
	}
	return out, nil
}

// isVolumeSuffix reports whether tail is the suffix of a volume, a parity volume or the
// table.
func isVolumeSuffix(tail string) bool {
	_, _, volume := volumeName("x" + tail)
	if digits, parity := strings.CutPrefix(tail, ".p"); parity {
		_, _, volume = volumeName("x." + digits)
	}
	return volume || tail == tableSuffix
}

// volumeFiles lists the existing volume files of base: the first volume, then the others,
// the table and parity.
func volumeFiles(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		tail, ok := cutBase(e.Name(), filepath.Base(base))
		if ok && !e.IsDir() && isVolumeSuffix(tail) {
			out = append(out, filepath.Join(filepath.Dir(base), e.Name()))
		}
	}
	slices.Sort(out) // ".001" sorts before all others
	return out, nil
}

func cutBase(name, base string) (string, bool) {
	if len(name) <= len(base) || name[:len(base)] != base {
		return "", false
	}
	return name[len(base):], true
}

func (v *volumeOutput) discard() error {
	var errs []error
	for _, f := range append(v.files, v.made...) {
		if f != nil {
			errs = append(errs, f.Close())
			if err := os.Remove(f.Name()); !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	if v.existing {
		errs = append(errs, clearParts(v.base))
	}
	return errors.Join(errs...)
}

// keep closes the volumes and removes parity and table, which are computed at the end.
func (v *volumeOutput) keep() error {
	var errs []error
	for _, f := range v.made {
		errs = append(errs, f.Close())
		if err := os.Remove(f.Name()); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, f := range v.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
