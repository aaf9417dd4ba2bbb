package fetch

import (
	"context"
	"fmt"
	"io"

	"github.com/mensylisir/kubexm/manifest"
)

// File is a sink that is completed, or closed without that.
type File interface {
	Sink
	Commit() error
	Close() error
}

// OpenFile returns the file for the content with a sha256 in hex; nil if it is not needed.
type OpenFile func(ctx context.Context, sha256 string) (File, error)

// Unpack downloads an archive, checks it, and writes its selected entries into files, each
// checked against its pin. An entry that does not match is a *DigestError.
type Unpack func(ctx context.Context, open OpenFile) error

// openedEntry is a selected entry in a file of the caller.
type openedEntry struct {
	file File // nil if the entry is not needed
	id   string
	pin  manifest.Member
}

// openEntry returns the file of one of a's selected entries.
func openEntry(ctx context.Context, a manifest.Artifact, selected string, open OpenFile) (entryFile, error) {
	for _, m := range a.Members {
		if m.Path == selected {
			f, err := open(ctx, m.SHA256)
			return &openedEntry{file: f, id: a.ID, pin: m}, err
		}
	}
	return nil, fmt.Errorf("entry %s is not selected", selected)
}

// receive completes the file: its pin is known.
func (o *openedEntry) receive(ctx context.Context, r io.Reader) error {
	if o.file == nil {
		return nil
	}
	if o.file.Have() > 0 { // of an earlier build; the entry comes from its beginning
		if err := o.file.Reset(); err != nil {
			return err
		}
	}
	bounded := &boundedReader{r: &stoppable{ctx, r}, left: o.pin.Size, limit: o.pin.Size}
	if _, err := o.file.ReadFrom(bounded); err != nil {
		return err
	}
	if got := o.file.Digest(); got != o.pin.SHA256 {
		return &DigestError{Name: o.id + ": entry " + o.pin.Path, Want: o.pin.SHA256, Got: got}
	}
	return o.file.Commit()
}

func (o *openedEntry) digest() string { return o.pin.SHA256 }

func (o *openedEntry) length() int64 { return o.pin.Size }

func (o *openedEntry) commit() error { return nil }

func (o *openedEntry) abort() {
	if o.file != nil {
		_ = o.file.Close() // after Commit it does nothing
	}
}

// stoppable is a reader that fails when its context has ended.
type stoppable struct {
	ctx context.Context //nolint:containedctx // of the one call that reads it
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
