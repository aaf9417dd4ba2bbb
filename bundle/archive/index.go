package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The frame of the index: see docs/reference/bundle-format.md.
const (
	skippableMagic = "\x5b\x2a\x4d\x18"
	skippableLen   = 8 // magic and length
	trailerMagic   = "kubexmB1"
	trailerLen     = 8 + 8 + sha256.Size + len(trailerMagic)
	indexFormat    = "kubexm-archive/1"
	maxIndex       = 16 << 20 // 32,768 entries of at most 400 bytes, with a margin
)

// indexHead is the first line of the index.
type indexHead struct {
	Format  string `json:"format"`
	Members int    `json:"members"`
}

// appendIndex appends the index of members: one JSON object per line.
func appendIndex(dst []byte, members []Member) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	// A buffer accepts all bytes, and strings and numbers always encode.
	_ = enc.Encode(indexHead{Format: indexFormat, Members: len(members)})
	for i := range members {
		_ = enc.Encode(&members[i])
	}
	return b.Bytes()
}

// appendIndexFrame appends the skippable frame with the index of members, which begins at
// offset in the file.
func appendIndexFrame(dst []byte, offset int64, members []Member) []byte {
	index := appendIndex(nil, members)
	dst = append(dst, skippableMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(index)+trailerLen)) //nolint:gosec // at most maxIndex
	dst = append(dst, index...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(offset+skippableLen)) //nolint:gosec // offsets are not negative
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(index)))
	sum := sha256.Sum256(index)
	dst = append(dst, sum[:]...)
	return append(dst, trailerMagic...)
}

// parseTrailer returns offset and length of the index in a file of the given size. tail is
// the file's last trailerLen bytes.
func parseTrailer(tail []byte, size int64) (offset, length int64, err error) {
	if magic := string(tail[len(tail)-len(trailerMagic):]); magic != trailerMagic {
		if strings.HasPrefix(magic, trailerMagic[:len(trailerMagic)-1]) {
			return 0, 0, otherVersion(fmt.Sprintf("its index has format %q, this version of kubexm reads %q", magic, trailerMagic))
		}
		return 0, 0, fault(ErrTruncated, "", size, "no index at the end of the file: the file was truncated, or data was appended")
	}
	off, n := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	end := uint64(size) //nolint:gosec // a file's size is not negative
	if n > maxIndex || off > end || off+n != end-uint64(trailerLen) || off < skippableLen {
		return 0, 0, fault(ErrIndex, "", size-int64(trailerLen), "the trailer at the end of the file does not locate the index")
	}
	return int64(off), int64(n), nil //nolint:gosec // both within size, as just checked
}

// otherVersion is the error for an archive in another format version.
func otherVersion(detail string) error {
	return &Error{Code: ErrIndex, Offset: noOffset, Detail: detail, Advice: "use the version of kubexm that built it, or a newer one"}
}

// parseIndexFrame parses an index frame that begins at offset in the file. It accepts only
// the bytes that appendIndexFrame writes.
func parseIndexFrame(frame []byte, offset int64) ([]Member, error) {
	if len(frame) < skippableLen+trailerLen {
		return nil, fault(ErrIndex, "", offset, "the index frame has only %d bytes", len(frame))
	}
	trailer := frame[len(frame)-trailerLen:]
	index := frame[skippableLen : len(frame)-trailerLen]
	sum := sha256.Sum256(index)
	if !bytes.Equal(trailer[16:16+sha256.Size], sum[:]) {
		return nil, fault(ErrIndex, "", offset, "the index does not match its checksum")
	}
	members, err := parseIndex(index)
	if errors.Is(err, ErrIndex) {
		return nil, err
	}
	if err != nil {
		return nil, &Error{Code: ErrIndex, Offset: offset, Detail: "the index cannot be read", Err: err}
	}
	if !bytes.Equal(frame, appendIndexFrame(nil, offset, members)) {
		return nil, fault(ErrIndex, "", offset, "the index is not written as the format prescribes")
	}
	if err := checkPlaces(members, offset); err != nil {
		return nil, err
	}
	return members, nil
}

// parseIndex decodes the lines of an index. It checks the count before it allocates, so
// that a hostile index costs no more memory than a valid one.
func parseIndex(index []byte) ([]Member, error) {
	first, rest, _ := bytes.Cut(index, []byte{'\n'})
	var head indexHead
	if err := json.Unmarshal(first, &head); err != nil {
		return nil, err
	}
	if head.Format != indexFormat {
		return nil, otherVersion(fmt.Sprintf("its index has the format %.40q, this version of kubexm reads %q", head.Format, indexFormat))
	}
	if n := bytes.Count(rest, []byte{'\n'}); n != head.Members || n > maxMembers {
		return nil, fmt.Errorf("%d lines for %d entries, the limit is %d entries", n, head.Members, maxMembers)
	}
	members := make([]Member, head.Members)
	for i := range members {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if err := json.Unmarshal(line, &members[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return members, nil
}

// checkPlaces recomputes the offsets: each entry begins where the previous one ends, stored
// entries have the length that follows from their size, and the end-of-tar frame fills the
// rest up to the index frame.
func checkPlaces(members []Member, frameAt int64) error {
	if err := checkMembers(members); err != nil {
		return err
	}
	end := int64(0)
	for i := range members {
		m := &members[i]
		if m.Digest == "" && m.Name != slotName || m.Digest != "" && checkDigest(m.Digest) != nil {
			return fault(ErrIndex, m.Name, m.Offset, "listed with digest %q", m.Digest)
		}
		if m.Name == slotName && m.Digest != "" {
			return fault(ErrIndex, m.Name, m.Offset, "the signature slot cannot have a digest")
		}
		if m.Offset != end {
			return fault(ErrIndex, m.Name, m.Offset, "listed with an offset at which it does not begin")
		}
		fits := m.Length == storedLen(m.Size)
		if !m.Stored() {
			fits = m.Length >= minCompressedLen(m.Size) && m.Length <= frameAt && len(m.XXH64) == len(pendingXXH64)
		}
		if !fits {
			return fault(ErrIndex, m.Name, m.Offset, "listed with %d bytes of frames, impossible for %d of data", m.Length, m.Size)
		}
		end += m.Length
	}
	if end+rawFrameLen(endData) != frameAt {
		return fault(ErrIndex, "", end, "the index does not cover all bytes of the file")
	}
	return nil
}
