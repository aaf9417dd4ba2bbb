package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Split splits the archive at path into the volumes to.001, to.002 and so on; concatenated
// they are the same bytes. path is not removed. progress, if not nil, receives the number
// of bytes just copied, and o.Sealing the number of bytes just hashed.
func Split(ctx context.Context, path, to string, o VolumeOptions, progress func(int64)) (err error) {
	r, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.volumes != nil {
		return &Error{Code: ErrInput, Offset: noOffset, Detail: path + " is in volumes already", Advice: "kubexm bundle join " + path}
	}
	lock, err := lockPath(to)
	if err != nil {
		return err
	}
	defer lock.release()
	out, err := newOutput(to, r.size, o, false)
	if err != nil {
		return err
	}
	if err := out.reserve(r.size); err != nil {
		return errors.Join(err, out.discard())
	}
	src := interruptible{io.TeeReader(io.NewSectionReader(r.file, 0, r.size), meter{ctx.Err, progress}), ctx.Err}
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.NewOffsetWriter(out, 0)}, src, make([]byte, pieceSize)); err != nil {
		return errors.Join(err, out.discard())
	}
	if err := out.publish(ctx, r.size); err != nil {
		return errors.Join(err, out.discard())
	}
	return nil
}

// Join writes the volumes, of which first is the path of the first, as one file at path.
// Each volume is checked against its digest. If a volume does not match the table, the
// error is ErrVolume and no file is left at path; Repair can rebuild it first.
func Join(ctx context.Context, first, path string, progress func(int64)) (err error) {
	base, t, err := tableOf(first)
	if err != nil {
		return err
	}
	set, err := openVolumes(base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	lock, err := lockPath(path)
	if err != nil {
		return err
	}
	defer lock.release()
	f, err := newPart(path)
	if err != nil {
		return err
	}
	if err := errors.Join(reserve(f, t.Size), set.copyTo(ctx, f, progress), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return durable.SyncDir(filepath.Dir(path))
}

// copyTo writes the volumes one after the other.
func (s *volumeSet) copyTo(ctx context.Context, w io.Writer, progress func(int64)) error {
	buf := make([]byte, pieceSize)
	for i, v := range s.table.Volumes {
		sum := sha256.New()
		src := io.TeeReader(io.NewSectionReader(s.files[i], 0, v.Size), io.MultiWriter(sum, meter{ctx.Err, progress}))
		n, err := io.CopyBuffer(struct{ io.Writer }{w}, src, buf)
		if err != nil {
			return err
		}
		if got := digestPrefix + hex.EncodeToString(sum.Sum(nil)); got != v.Digest || n != v.Size {
			return s.table.wrong(s.base, i, "the volume is damaged: its digest is "+got)
		}
	}
	return nil
}
