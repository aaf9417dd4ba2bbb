package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// VerifyVolume reads one volume completely, compares it with the table, and returns its
// entry. word is "3" for the third volume, "p1" for the first parity volume. first is the
// name of the first volume; no other volume needs to exist.
func VerifyVolume(ctx context.Context, first, word string, progress func(int64)) (Volume, error) {
	base, t, err := tableOf(first)
	if err != nil {
		return Volume{}, err
	}
	i, err := t.VolumeNumber(word)
	if err != nil {
		return Volume{}, err
	}
	return t.all()[i], t.verifyVolume(ctx, base, i, progress)
}

// Volumes returns the table of the archive whose first volume is first.
func Volumes(first string) (*VolumeTable, error) {
	_, t, err := tableOf(first)
	return t, err
}

// tableOf returns the table of the archive whose first volume is first.
func tableOf(first string) (base string, _ *VolumeTable, _ error) {
	base, i, ok := volumeName(first)
	if !ok || i != 0 {
		return "", nil, &Error{Code: ErrInput, Offset: noOffset, Detail: first + " is not the name of a first volume", Advice: "use the file that ends in .001"}
	}
	t, err := readTable(base)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, &Error{Code: ErrVolume, Volume: filepath.Base(base) + tableSuffix, Offset: noOffset,
			Detail: "the table of volumes is missing", Advice: "copy it too, beside the volumes"}
	}
	return base, t, err
}

// Repair reads all volumes and rebuilds those that are missing or do not match the table,
// from the others and parity. It returns the names of the rebuilt files; their bytes are
// those of the originals. If more volumes are lost than there are parity volumes, the error
// is ErrVolume and nothing is changed. Memory use does not depend on the size of the
// volumes.
func Repair(ctx context.Context, first string, progress func(int64)) (rebuilt []string, err error) {
	base, t, err := tableOf(first)
	if err != nil {
		return nil, err
	}
	lock, err := lockPath(base)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	var lost []int
	var found []error
	for i := range t.all() {
		err := t.verifyVolume(ctx, base, i, progress)
		var e *Error
		switch {
		case errors.As(err, &e):
			lost, found = append(lost, i), append(found, err)
		case err != nil:
			return nil, err
		}
	}
	if len(lost) > len(t.Parity) {
		names := make([]string, len(lost))
		for j, i := range lost {
			names[j] = filepath.Base(base) + t.all()[i].Name
		}
		return nil, errors.Join(append([]error{&Error{Code: ErrVolume, Offset: noOffset,
			Detail: fmt.Sprintf("%d volumes are missing or damaged (%s), and parity can rebuild %d", len(lost), strings.Join(names, ", "), len(t.Parity)),
			Advice: fmt.Sprintf("copy at least %d of them again", len(lost)-len(t.Parity))}}, found...)...)
	}
	if len(lost) > 0 {
		if err := t.rebuild(ctx, base, lost); err != nil {
			return nil, err
		}
	}
	for _, i := range lost {
		rebuilt = append(rebuilt, filepath.Base(base)+t.all()[i].Name)
	}
	made, err := t.restore(base)
	if made {
		rebuilt = append(rebuilt, filepath.Base(base)+tableSuffix)
	}
	return rebuilt, err
}

// rebuild rebuilds the volumes at lost from the others.
func (t *VolumeTable) rebuild(ctx context.Context, base string, lost []int) (err error) {
	shards := newShards(len(t.Volumes) + len(t.Parity))
	var open []*os.File
	parts := map[int]*os.File{}
	defer func() {
		for _, f := range open {
			_ = f.Close() // opened for reading only, or already synced
		}
		for _, f := range parts {
			_ = os.Remove(f.Name()) // fails for files that were renamed
		}
	}()
	isLost := map[int]bool{}
	for _, i := range lost {
		isLost[i] = true
	}
	for i, v := range t.all() {
		s := shards[i]
		s.size = v.Size
		if !isLost[i] {
			f, err := os.Open(base + v.Name)
			if err != nil {
				return err
			}
			s.in, open = f, append(open, f)
			continue
		}
		f, err := newPart(base + v.Name)
		if err != nil {
			return err
		}
		s.out, parts[i], open = f, f, append(open, f)
	}
	code, err := t.reconstruct(lost)
	if err != nil {
		return err
	}
	if err := walkShards(ctx, shards, t.Volumes[0].Size, code, nil); err != nil {
		return err
	}
	for _, i := range lost {
		v := t.all()[i]
		if got := shards[i].digest(); got != v.Digest {
			return t.wrong(base, i, "the volume rebuilt from parity does not match the table: its digest is "+got)
		}
		if i >= len(t.Volumes) {
			if _, err := parts[i].WriteAt(appendCopy(nil, t.encode()), v.Size); err != nil {
				return err
			}
		}
		if err := parts[i].Sync(); err != nil {
			return err
		}
		if err := os.Rename(parts[i].Name(), base+v.Name); err != nil {
			return err
		}
	}
	return durable.SyncDir(filepath.Dir(base))
}

// restore rewrites the table if it is missing or unreadable; parity volumes contain copies.
func (t *VolumeTable) restore(base string) (bool, error) {
	text, err := readBounded(base + tableSuffix)
	if err == nil && string(text) == string(t.encode()) {
		return false, nil
	}
	f, err := newPart(base + tableSuffix)
	if err != nil {
		return false, err
	}
	_, err = f.Write(t.encode())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), base+tableSuffix); err != nil {
		return false, err
	}
	return true, durable.SyncDir(filepath.Dir(base))
}
