package archive

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxFrameHeader is the longest header of a frame: magic, flags, window,
// dictionary and content size.
const maxFrameHeader = 4 + 1 + 1 + 4 + 8

// maxWindow is the largest window that a frame of a stream may require.
const maxWindow = 64 << 20

// frameScanner passes a zstd stream frame by frame to a decoder that would accept too much.
// It stops before a skippable frame instead of skipping it, and rejects dictionaries, large
// windows and truncated frames.
type frameScanner struct {
	br        *bufio.Reader
	offset    int64 // bytes passed on so far
	left      int64 // bytes of the current part to pass on
	at        part
	checksum  bool // the current frame ends with a checksum
	skippable bool // the scanner stopped at a skippable frame
	err       error
}

// part is the kind of the next bytes in the stream.
type part int

const (
	atFrame part = iota
	atBlock
	atChecksum
)

func newFrameScanner(r io.Reader, buffer int) *frameScanner {
	return &frameScanner{br: bufio.NewReaderSize(r, buffer)}
}

// Read returns the bytes of complete regular frames, and io.EOF at the end of the stream or
// before a skippable frame.
func (s *frameScanner) Read(p []byte) (int, error) {
	for s.left == 0 && s.err == nil {
		s.err = s.step()
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.br.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	s.offset += int64(n)
	if err != nil {
		s.err = s.cut(err)
	}
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

// step parses the beginning of the next part and sets its length.
func (s *frameScanner) step() error {
	switch s.at {
	case atFrame:
		return s.frame()
	case atBlock:
		return s.block()
	}
	s.left, s.at = 4, atFrame
	return nil
}

func (s *frameScanner) frame() error {
	b, err := s.br.Peek(maxFrameHeader)
	if len(b) == 0 || err != nil && err != io.EOF {
		return err
	}
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return s.cut(err)
		}
		return &Error{Code: ErrFrame, Offset: s.offset, Detail: "not a zstd frame", Err: err}
	}
	if h.Skippable {
		s.skippable = true
		return io.EOF
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if window > maxWindow {
		return fault(ErrWindow, "", s.offset, "a zstd frame requires a window of %d bytes, the limit is %d", window, maxWindow)
	}
	if h.DictionaryID != 0 {
		return fault(ErrFrame, "", s.offset, "a zstd frame requires a dictionary")
	}
	s.left, s.at, s.checksum = int64(h.HeaderSize), atBlock, h.HasCheckSum
	return nil
}

func (s *frameScanner) block() error {
	b, err := s.br.Peek(blockHeaderLen)
	if err != nil {
		return s.cut(err)
	}
	v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	size := int64(v >> 3)
	switch kind := v >> 1 & 3; {
	case kind == 3 || size > blockSize:
		return fault(ErrFrame, "", s.offset, "not a zstd block")
	case kind == 1: // one byte, repeated
		size = 1
	}
	s.left = blockHeaderLen + size
	if v&1 == 1 {
		if s.at = atFrame; s.checksum {
			s.at = atChecksum
		}
	}
	return nil
}

// cut describes an end inside a frame; it returns other errors unchanged.
func (s *frameScanner) cut(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault(ErrTruncated, "", s.offset, "the stream ends inside a zstd frame")
	}
	return err
}
