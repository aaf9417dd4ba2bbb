package rpm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The maximum size of a header, in bytes and entries; rpm's own limits are several times
// as high. The header of a kernel package has 10 MB.
const (
	maxHeader = 64 << 20
	maxTags   = 1 << 16
)

// The tags that are read, from rpm's rpmtag.h. The signature header has separate numbers.
const (
	tagName, tagVersion, tagRelease, tagEpoch, tagArch = 1000, 1001, 1002, 1003, 1022
	tagSourceRPM                                       = 1044
	tagPayloadDigest, tagPayloadDigestAlgorithm        = 5092, 5093
	signatureDSA, signatureRSA                         = 267, 268   // over the header
	signaturePGP, signatureGPG                         = 1002, 1005 // over header and payload
)

// header is one of the two headers of an rpm file.
type header struct {
	raw  []byte // unparsed
	tags map[uint32]tag
	data []byte
}

type tag struct{ Tag, Type, Offset, Count uint32 }

// readLead reads the lead of an rpm file.
func readLead(r io.Reader) error {
	lead := make([]byte, 96)
	if _, err := io.ReadFull(r, lead); err != nil || !bytes.HasPrefix(lead, []byte("\xed\xab\xee\xdb")) {
		return errors.New("it is not an rpm file")
	}
	return nil
}

// readHeader reads a header; the signature header is padded to eight bytes.
func readHeader(r io.Reader, signature bool) (*header, error) {
	var raw bytes.Buffer
	if _, err := io.CopyN(&raw, r, 16); err != nil {
		return nil, unexpected(err)
	}
	intro := raw.Bytes()
	n, size := binary.BigEndian.Uint32(intro[8:]), binary.BigEndian.Uint32(intro[12:])
	switch {
	case !bytes.HasPrefix(intro, []byte("\x8e\xad\xe8\x01")):
		return nil, errors.New("a header has a wrong magic number")
	case n > maxTags || size > maxHeader:
		return nil, fmt.Errorf("a header with %d entries and %d bytes is too long", n, size)
	}
	whole := 16 + 16*int64(n) + int64(size)
	if _, err := io.CopyN(&raw, r, whole-16); err != nil {
		return nil, unexpected(err)
	}
	if signature {
		if _, err := io.CopyN(io.Discard, r, (8-int64(size)%8)%8); err != nil {
			return nil, unexpected(err)
		}
	}
	h := &header{raw: raw.Bytes(), tags: map[uint32]tag{}, data: raw.Bytes()[16+16*n:]}
	index := make([]tag, n)
	if _, err := binary.Decode(h.raw[16:], binary.BigEndian, index); err != nil {
		return nil, err
	}
	for _, t := range index {
		if _, ok := h.tags[t.Tag]; ok {
			return nil, fmt.Errorf("a header has tag %d twice", t.Tag)
		}
		if t.Offset > size {
			return nil, fmt.Errorf("tag %d of a header is outside of the header", t.Tag)
		}
		h.tags[t.Tag] = t
	}
	return h, nil
}

// The types of tags that are read.
const (
	typeInt32       = 4
	typeString      = 6
	typeBinary      = 7
	typeStringArray = 8
)

// text returns a string tag, or the first of several; "" if it is missing.
func (h *header) text(number uint32) string {
	t, ok := h.tags[number]
	if !ok || t.Type != typeString && t.Type != typeStringArray || t.Count == 0 {
		return ""
	}
	s, _, ok := strings.Cut(string(h.data[t.Offset:min(uint64(len(h.data)), uint64(t.Offset)+1<<16)]), "\x00")
	if !ok {
		return ""
	}
	return s
}

// number returns a number tag, or the first of several.
func (h *header) number(number uint32) (uint32, bool) {
	t, ok := h.tags[number]
	if !ok || t.Type != typeInt32 || t.Count == 0 || len(h.data)-int(t.Offset) < 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(h.data[t.Offset:]), true
}

// bytes returns a binary tag; nil if it is missing.
func (h *header) bytes(number uint32) []byte {
	t, ok := h.tags[number]
	if !ok || t.Type != typeBinary || uint64(t.Offset)+uint64(t.Count) > uint64(len(h.data)) {
		return nil
	}
	return h.data[t.Offset : t.Offset+t.Count]
}
