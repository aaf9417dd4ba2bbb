package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The files of the cluster record, on each master.
const (
	copyConfig  = "config.yaml"
	copyLock    = "kubexm.lock.zst"
	copySummary = "record.json"
)

// ownDir returns the cluster's folder on its hosts.
func ownDir(h *steps.Host) string { return path.Dir(op.RecordDir(h)) }

// copiesDir returns the folder of a master's copy of the cluster record.
func copiesDir(h *steps.Host) string { return path.Join(ownDir(h), "applied") }

// theRecord passes the cluster record to masters whose own API servers do not answer.
var theRecord = steps.NewKey[*Recorded]("kubernetes.record")

// ReadRecord reads the cluster record on the first healthy master.
func ReadRecord() steps.Step {
	m := steps.Meta{Name: "kubernetes.read-record", Always: true, ReadOnly: true, Writes: []steps.AnyKey{theRecord}}
	kubectl.WithRetries(&m)
	return &op.Do{M: m, Act: func(ctx context.Context, h *steps.Host) error {
		r, err := recorded(ctx, h)
		if err != nil {
			return err
		}
		return theRecord.Put(h, r)
	}}
}

// WriteCopy stores a copy of the cluster record and the lock file on a master. kubexm reads
// the copy when no API server answers.
func WriteCopy() steps.Step {
	reads := func(m *steps.Meta) { m.Reads = []steps.AnyKey{theRecord} }
	return op.Ensure("kubernetes.keep-copy", []op.Resource{copies{}}, kubectl.WithRetries, reads)
}

// RemoveCopy removes the copy of the cluster record from a master.
func RemoveCopy() steps.Step { return op.Remove("kubernetes.remove-copy", []op.Resource{copies{}}) }

// copies is a master's copy of the cluster record. Its folder contains nothing else.
type copies struct{}

func (copies) String() string { return "copy of the cluster's record" }

// Needs returns nil.
func (copies) Needs() []manifest.Need { return nil }

// Want compares each file with the cluster record.
func (copies) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	r, err := theRecord.Get(h)
	if err != nil { // no step has read it: drift detection reads it on this master
		if r, err = recorded(ctx, h); err != nil {
			return nil, err
		}
	}
	want := map[string][]byte{copyConfig: r.Config}
	if want[copySummary], err = r.text(); err != nil {
		return nil, err
	}
	lock := h.Applied().Lock
	if lock == nil { // drift detection may not have it: the existing copy is compared with the record's digest
		if lock, err = LockOf(ctx, h, r); err != nil {
			return nil, err
		}
	}
	if want[copyLock], err = packed(lock); err != nil {
		return nil, err
	}
	have, err := readCopies(ctx, h)
	if err != nil || maps.EqualFunc(want, have, bytes.Equal) {
		return nil, err
	}
	return &op.Change{
		What:  "write " + copiesDir(h),
		Apply: func(ctx context.Context, h *steps.Host) error { return writeCopies(ctx, h, want) },
		Undo: func(ctx context.Context, h *steps.Host) error {
			if len(have) == 0 {
				return h.RemoveAll(ctx, copiesDir(h))
			}
			return writeCopies(ctx, h, have)
		},
	}, nil
}

// Gone removes the folder.
func (copies) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	switch _, err := h.Stat(ctx, copiesDir(h)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &op.Change{What: "remove " + copiesDir(h), Apply: func(ctx context.Context, h *steps.Host) error { return h.RemoveAll(ctx, copiesDir(h)) }}, nil
}

// readCopies returns the existing files by name.
func readCopies(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range []string{copyConfig, copyLock, copySummary} {
		text, err := h.ReadFile(ctx, path.Join(copiesDir(h), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// writeCopies writes the summary last: a copy without a summary is invalid.
func writeCopies(ctx context.Context, h *steps.Host, all map[string][]byte) error {
	if _, err := h.Mkdir(ctx, copiesDir(h), runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all)) // config.yaml, kubexm.lock.zst, record.json
	for _, name := range names {
		if err := h.WriteFile(ctx, path.Join(copiesDir(h), name), all[name], runner.Attr{Mode: 0o600}); err != nil {
			return err
		}
	}
	return nil
}

// ReadCopy reads a master's copy of the cluster record; nil if it has none.
func ReadCopy(ctx context.Context, h *steps.Host) (*Recorded, error) {
	text, err := h.ReadFile(ctx, path.Join(copiesDir(h), copySummary))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Recorded{}
	if err := json.Unmarshal(text, &r.Summary); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(copiesDir(h), copySummary), err)
	}
	r.Config, err = h.ReadFile(ctx, path.Join(copiesDir(h), copyConfig))
	return r, err
}

// largestLock limits the unpacked size of a master's copy of a lock file, in bytes.
const largestLock = 64 << 20

// LockOf reads the lock file of record r from a master's copy; nil if it has none, or if
// its digest is not the one in r.
func LockOf(ctx context.Context, h *steps.Host, r *Recorded) ([]byte, error) {
	text, err := h.ReadFile(ctx, path.Join(copiesDir(h), copyLock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(largestLock), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := d.DecodeAll(text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(copiesDir(h), copyLock), err)
	}
	if r.Summary["lock"] != digest.FromBytes(out).String() {
		return nil, nil
	}
	return out, nil
}

// WriteRecorded writes a record to the cluster's folder on the workdir host. If lock is
// nil it removes an existing lock file, which belongs to another record.
func WriteRecorded(workdir string, r *Recorded, lock []byte) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(workdir, appliedPath(name)) }
	if lock == nil {
		err = removeFile(at(appliedLock))
	} else {
		err = writeSecret(at(appliedLock), lock)
	}
	return errors.Join(err, writeSecret(at(appliedConfig), r.Config), writeSecret(at(appliedSummary), text))
}

// packed compresses a lock file. The output is deterministic.
func packed(lock []byte) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(lock, nil), e.Close()
}
