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

// The index's frame: see docs/bundle-format.md.
const (
	skippableMagic = "\x5b\x2a\x4d\x18"
	skippableLen   = 8 // magic and length
	trailerMagic   = "kubexmB1"
	trailerLen     = 8 + 8 + sha256.Size + len(trailerMagic)
	indexFormat    = "kubexm-archive/1"
	maxIndex       = 16 << 20 // 32,768 members of at most 400 bytes, and room
)

// indexHead is the first line of the index.
type indexHead struct {
	Format  string `json:"format"`
	Members int    `json:"members"`
}

// appendIndex appends the index of members: one JSON object a line.
func appendIndex(dst []byte, members []Member) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	// A buffer takes all bytes, and strings and numbers always encode.
	_ = enc.Encode(indexHead{Format: indexFormat, Members: len(members)})
	for i := range members {
		_ = enc.Encode(&members[i])
	}
	return b.Bytes()
}

// appendIndexFrame appends the skippable frame that lists members and begins at
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

// parseTrailer reads where the index of a file of the given size lies. tail is
// the file's last trailerLen bytes.
func parseTrailer(tail []byte, size int64) (offset, length int64, err error) {
	if magic := string(tail[len(tail)-len(trailerMagic):]); magic != trailerMagic {
		if strings.HasPrefix(magic, trailerMagic[:len(trailerMagic)-1]) {
			return 0, 0, later(fmt.Sprintf("its index is of the form %q, this version of kubexm reads %q", magic, trailerMagic))
		}
		return 0, 0, fault(ErrTruncated, "", size, "no index where the file ends: it was cut short, or something was added")
	}
	off, n := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	end := uint64(size) //nolint:gosec // a file's size, not negative
	if n > maxIndex || off > end || off+n != end-uint64(trailerLen) || off < skippableLen {
		return 0, 0, fault(ErrIndex, "", size-int64(trailerLen), "the file's end does not say where the index is")
	}
	return int64(off), int64(n), nil //nolint:gosec // both within size, as just checked
}

// later is the finding that an archive is of another form than this one.
func later(detail string) error {
	return &Error{Code: ErrIndex, Offset: noOffset, Detail: detail, Advice: "use the version of kubexm that it was made with, or a newer one"}
}

// parseIndexFrame reads a whole index frame that begins at offset in the file,
// and accepts only the bytes that appendIndexFrame would have made.
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

// parseIndex decodes the lines of an index. It bounds the count before it
// allocates, so that a hostile index costs no more memory than an honest one.
func parseIndex(index []byte) ([]Member, error) {
	first, rest, _ := bytes.Cut(index, []byte{'\n'})
	var head indexHead
	if err := json.Unmarshal(first, &head); err != nil {
		return nil, err
	}
	if head.Format != indexFormat {
		return nil, later(fmt.Sprintf("its index has the format %.40q, this version of kubexm reads %q", head.Format, indexFormat))
	}
	if n := bytes.Count(rest, []byte{'\n'}); n != head.Members || n > maxMembers {
		return nil, fmt.Errorf("%d lines for %d members, at most %d are possible", n, head.Members, maxMembers)
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

// checkPlaces lays the members out again: each begins where the one before it
// ends, stored ones have the length that their size gives, and the tar's end
// fills the rest up to the index's frame.
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
			return fault(ErrIndex, m.Name, m.Offset, "the slot cannot have a digest")
		}
		if m.Offset != end {
			return fault(ErrIndex, m.Name, m.Offset, "listed at a place where it does not begin")
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
		return fault(ErrIndex, "", end, "the index leaves bytes of the file out")
	}
	return nil
}
