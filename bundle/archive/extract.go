package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// ExtractOptions are the options of an extraction.
type ExtractOptions struct {
	// Limit is the maximum amount of data to write, in bytes. It is required.
	Limit int64
	// Head, if not nil, is called when the head and the signature slot are in the stage
	// directory, before any other blob is read. It is the place to verify a signature. It
	// returns digest and size of every blob that must follow; an unlisted or missing blob
	// is an error. A nil map accepts every blob whose content matches its name.
	Head func(stage *os.Root) (map[string]int64, error)
	// Progress, if not nil, receives the number of bytes just written.
	Progress func(n int64)
}

// Extract unpacks a bundle archive from a stream into dir: an OCI layout and the signature
// slot. It needs no index and accepts any zstd framing. It accepts only the tar that the
// format prescribes: defined names, regular files, sizes within limits, every blob equal to
// its digest, an end, and no data after it.
//
// dir must not exist or must be an empty directory. Everything is written to .name.part
// beside it, which is renamed when all of it is checked and synced. After an error no file
// is left. Errors about the format are *Error.
func Extract(ctx context.Context, rd io.Reader, dir string, o ExtractOptions) (err error) {
	if o.Limit <= 0 {
		return fault(ErrInput, "", noOffset, "an extraction needs a limit")
	}
	st, err := newStage(dir)
	if err != nil {
		return err
	}
	x := &extraction{stop: ctx.Err, ExtractOptions: o, stage: st, buf: make([]byte, pieceSize)}
	if err := x.run(rd); err != nil {
		return errors.Join(err, st.discard())
	}
	if err := st.publish(); err != nil {
		return errors.Join(err, st.discard())
	}
	return nil
}

// extraction is the state of one Extract.
type extraction struct {
	ExtractOptions
	stop  func() error // the context's Err
	stage *stage
	scan  *frameScanner
	tar   io.Reader // the decoded stream
	buf   []byte

	order   order
	seen    []Member // names, digests and sizes, in order
	total   int64
	wanted  map[string]int64 // blobs that Head returned and that have not been read yet
	limited bool             // wanted is set
}

func (x *extraction) run(rd io.Reader) error {
	x.scan = newFrameScanner(interruptible{rd, x.stop}, scanBuffer)
	if magic, err := x.scan.br.Peek(4); string(magic) != rawFrameHeader[:4] {
		if err != nil && err != io.EOF {
			return err
		}
		return fault(ErrFormat, "", 0, "not a bundle archive")
	}
	dec, err := newDecoder(x.scan)
	if err != nil {
		return x.broken(err, "")
	}
	defer dec.Close()
	x.tar = dec
	for {
		more, err := x.member()
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if err := x.order.end(); err != nil {
		return err
	}
	for digest := range x.wanted {
		return fault(ErrMissing, blobName(digest), noOffset, "the archive lacks %d blobs, this is one of them", len(x.wanted))
	}
	return x.after()
}

// member reads one entry from the tar; false means the end of the tar.
func (x *extraction) member() (bool, error) {
	var block [tarBlock]byte
	if err := x.fill(block[:], ""); err != nil {
		return false, err
	}
	if block == [tarBlock]byte{} {
		return false, x.end()
	}
	m, err := parseHeader(block[:])
	if err != nil {
		return false, err
	}
	if err := x.admit(m); err != nil {
		return false, err
	}
	if err := x.write(m); err != nil {
		return false, err
	}
	padding := x.buf[:paddingLen(m.Size)]
	if err := x.fill(padding, m.Name); err != nil {
		return false, err
	}
	if len(bytes.Trim(padding, "\x00")) > 0 {
		return false, fault(ErrPadding, m.Name, noOffset, "the tar padding is not zeros")
	}
	x.seen = append(x.seen, *m)
	if m.Name == slotName {
		return true, x.head()
	}
	return true, nil
}

// admit checks that m may come in this position and with this size.
func (x *extraction) admit(m *Member) error {
	if err := x.order.next(m.Name, m.Size); err != nil {
		return err
	}
	if m.Size > x.Limit-x.total {
		return fault(ErrLimit, m.Name, noOffset, "the archive holds more than the %d bytes allowed", x.Limit)
	}
	x.total += m.Size
	if !x.limited {
		return nil
	}
	size, ok := x.wanted[m.Digest]
	if !ok {
		return fault(ErrUnexpected, m.Name, noOffset, "the bundle's root does not list this blob")
	}
	if size != m.Size {
		return fault(ErrSize, m.Name, noOffset, "the entry has %d bytes, the bundle's root lists %d", m.Size, size)
	}
	delete(x.wanted, m.Digest)
	return nil
}

// write copies an entry's data to the stage and checks its digest, or records the digest if
// the name has none.
func (x *extraction) write(m *Member) (err error) {
	f, err := x.stage.create(m.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	for left := m.Size; left > 0; {
		p := x.buf[:min(left, int64(len(x.buf)))]
		if err := x.fill(p, m.Name); err != nil {
			return err
		}
		sum.Write(p)
		if _, err := f.Write(p); err != nil {
			return err
		}
		left -= int64(len(p))
		if x.Progress != nil {
			x.Progress(int64(len(p)))
		}
	}
	if m.Digest == "" && m.Name != slotName {
		m.Digest = digestPrefix + hex.EncodeToString(sum.Sum(nil))
	}
	return checkSum(m, sum)
}

// head checks the slot's syntax and calls Head.
func (x *extraction) head() error {
	slot, err := x.stage.root.ReadFile(slotName)
	if err != nil {
		return err
	}
	if _, err := parseSlot(slot); err != nil {
		return err
	}
	if x.Head == nil {
		return nil
	}
	wanted, err := x.Head(x.stage.root)
	if err != nil || wanted == nil {
		return err
	}
	x.limited, x.wanted = true, make(map[string]int64, len(wanted))
	for d, n := range wanted {
		if !x.order.seen[blobName(d)] {
			x.wanted[d] = n
		}
	}
	return nil
}

// fill reads exactly p from the tar.
func (x *extraction) fill(p []byte, member string) error {
	if _, err := io.ReadFull(x.tar, p); err != nil {
		return x.broken(err, member)
	}
	return nil
}

// end checks the second end-of-tar block.
func (x *extraction) end() error {
	var block [tarBlock]byte
	if err := x.fill(block[:], ""); err != nil {
		return err
	}
	if block != [tarBlock]byte{} {
		return fault(ErrEnd, "", noOffset, "the tar's end is damaged")
	}
	n, err := io.ReadFull(x.tar, block[:1])
	if n > 0 {
		return fault(ErrTrailing, "", noOffset, "data follows the tar's end")
	}
	if err != io.EOF {
		return x.broken(err, "")
	}
	return nil
}

// after checks what follows the tar: nothing, or the index frame of this tar.
func (x *extraction) after() error {
	at := x.scan.offset
	if !x.scan.skippable {
		return nil // the scanner saw the stream's end
	}
	frame, err := io.ReadAll(io.LimitReader(x.scan.br, skippableLen+maxIndex+int64(trailerLen)+1))
	if err != nil {
		return err
	}
	if len(frame) < skippableLen+trailerLen || string(frame[len(frame)-len(trailerMagic):]) != trailerMagic {
		var h zstd.Header
		if err := h.Decode(frame); err == nil && int64(len(frame)) > int64(h.HeaderSize)+int64(h.SkippableSize) {
			return fault(ErrTrailing, "", at, "data follows the last frame")
		}
		return fault(ErrTruncated, "", at+int64(len(frame)), "the index is truncated")
	}
	members, err := parseIndexFrame(frame, at)
	if err != nil {
		return err
	}
	if len(members) != len(x.seen) {
		return fault(ErrIndex, "", at, "the index lists %d entries, the archive has %d", len(members), len(x.seen))
	}
	for i, m := range members {
		if s := x.seen[i]; m.Name != s.Name || m.Size != s.Size || m.Digest != s.Digest {
			return fault(ErrIndex, s.Name, at, "the index lists another entry in this position")
		}
	}
	return nil
}

// broken words what the decoder or the scanner found while member was read.
func (x *extraction) broken(err error, member string) error {
	var e *Error
	switch {
	case errors.As(err, &e):
		named := *e
		named.Member = member
		return &named
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		return fault(ErrEnd, member, x.scan.offset, "the tar stream is truncated")
	case x.stop() != nil:
		return x.stop()
	}
	return &Error{Code: ErrFrame, Member: member, Offset: x.scan.offset, Detail: "cannot be decompressed", Err: err}
}
