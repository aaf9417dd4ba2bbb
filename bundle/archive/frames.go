package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"runtime/debug"
	"strconv"
)

// Frames is a compressed blob of an archive. As a reader it is the content, checked like that
// of Reader.Blob. A Writer copies the compressed frames instead, and decodes them only to check
// the content: the archives must have the same Compressor.
type Frames struct {
	io.ReadCloser
	raw *io.SectionReader
	m   Member
}

// Compressor identifies what compresses blobs in this program, by what it makes of a sample and
// by the library's version, if the program knows that. Programs with the same compressor
// compress the same content to the same bytes. It is "" if there is no compressor.
func Compressor() string {
	enc, err := newEncoder()
	if err != nil {
		return ""
	}
	defer func() { _ = enc.Close() }() // nothing is written to it
	probe := make([]byte, 0, 2*blockSize)
	for i := int64(0); len(probe) < cap(probe)-32; i++ { // words that repeat, and numbers that do not
		probe = strconv.AppendInt(strconv.AppendInt(probe, i*7919%1009, 36), i*i, 16)
	}
	sum := sha256.Sum256(enc.EncodeAll(probe, nil))
	name := hex.EncodeToString(sum[:8])
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/klauspost/compress" {
				name += " " + d.Version
			}
		}
	}
	return name
}

// Frames opens the compressed blob with this digest; nil if the archive has none.
func (r *Reader) Frames(digest string) (*Frames, error) {
	if checkDigest(digest) != nil {
		return nil, nil //nolint:nilnil // not in the archive
	}
	i, ok := r.names[blobName(digest)]
	if !ok || r.members[i].Stored() {
		return nil, nil //nolint:nilnil // not in the archive, or not compressed
	}
	m := r.members[i]
	rc, _, err := r.Blob(digest)
	if err != nil {
		return nil, err
	}
	return &Frames{rc, io.NewSectionReader(r.file, m.Offset+headLen, m.Length-minCompressedLen(m.Size)), m}, nil
}

// copyFrames stages the claimed blob m from the frames of another archive. Errors of that
// archive are ErrFrame, ErrSize or ErrDigest.
func (w *Writer) copyFrames(ctx context.Context, m *Member, f *Frames) error {
	s, err := w.stage(ctx, m, sha256.New())
	if err != nil {
		return err
	}
	if s.have > 0 { // of an earlier Writer, and not needed
		if err := s.Reset(); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	to := &stagedFrames{s: s}
	n, raw, err := readFrames(ctx, io.TeeReader(f.raw, to), s.sum)
	switch {
	case to.err != nil:
		err = to.err
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = &Error{Code: ErrFrame, Member: m.Name, Offset: f.m.Offset, Detail: "cannot be copied", Err: err}
	case n != m.Size || s.length != f.raw.Size() || hexSum(raw) != f.m.XXH64:
		err = fault(ErrFrame, m.Name, f.m.Offset, "the compressed bytes are not those that the index lists")
	default:
		s.have, s.raw = n, raw
		err = s.Commit()
	}
	return errors.Join(err, s.Close())
}

// stagedFrames writes to the file of a staged blob, and keeps its error.
type stagedFrames struct {
	s   *stagedBlob
	err error
}

func (t *stagedFrames) Write(p []byte) (int, error) {
	n, err := t.s.file.WriteAt(p, t.s.length)
	t.s.length += int64(n)
	t.err = err
	return n, err
}
