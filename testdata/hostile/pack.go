package hostile

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// The names and sizes of docs/reference/bundle-format.md.
const (
	layoutName = "oci-layout"
	indexName  = "index.json"
	slotName   = "kubexm/signatures"
	blobPrefix = "blobs/sha256/"

	slotSize   = 256 << 10
	blockSize  = 128 << 10
	chunkSize  = 2 << 20
	frameMagic = "\x28\xb5\x2f\xfd\x00\x38" // of a raw frame: no flags, a window of 128 KiB
	skipMagic  = "\x5b\x2a\x4d\x18"
	endMagic   = "kubexmB1"
)

// member is one entry of an archive, with the lies that are told about it.
type member struct {
	name     string
	data     []byte
	compress bool

	header []byte // in place of the tar header that follows from name and size
	frames []byte // in place of the frames that follow from data
	pad    []byte // in place of the padding's frame; empty for none at all
	listed *entry // in place of its line in the index
	secret bool   // it has no line in the index
}

// entry is a member's line in the index.
type entry struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	XXH64  string `json:"xxh64,omitempty"`
}

// pack is an archive to write.
type pack struct {
	members []member
	end     []byte                    // in place of the tar's end
	index   func(lines []byte) []byte // changes the index before it is summed up; may be nil
	tail    []byte                    // after everything
}

// bytes writes the archive.
func (p *pack) bytes() ([]byte, error) {
	var out []byte
	var lines bytes.Buffer
	n := 0
	for i := range p.members {
		m := &p.members[i]
		at := int64(len(out))
		e := entry{Name: m.name, Size: int64(len(m.data)), Offset: at}
		if m.name != slotName {
			e.Digest = digestOf(m.data)
		}
		var err error
		if out, e.XXH64, err = m.appendTo(out); err != nil {
			return nil, fmt.Errorf("%.80q: %w", m.name, err)
		}
		e.Length = int64(len(out)) - at
		if m.secret {
			continue
		}
		if m.listed != nil {
			e = m.lie(e)
		}
		n++
		if err := encodeLine(&lines, e); err != nil {
			return nil, err
		}
	}
	end := p.end
	if end == nil {
		end = rawFrame(make([]byte, 1024))
	}
	out = append(out, end...)
	index := fmt.Appendf(nil, `{"format":"kubexm-archive/1","members":%d}`+"\n%s", n, lines.Bytes())
	if p.index != nil {
		index = p.index(index)
	}
	if index != nil {
		out = append(out, indexFrame(index, int64(len(out)))...)
	}
	return append(out, p.tail...), nil
}

// lie is m's line where it differs from the true one: fields that are not set stay true.
func (m *member) lie(e entry) entry {
	x := *m.listed
	if x.Name == "" {
		x.Name = e.Name
	}
	if x.Digest == "" {
		x.Digest = e.Digest
	}
	if x.Size == 0 {
		x.Size = e.Size
	}
	if x.Offset == 0 {
		x.Offset = e.Offset
	}
	if x.Length == 0 {
		x.Length = e.Length
	}
	if x.XXH64 == "" {
		x.XXH64 = e.XXH64
	}
	return x
}

func encodeLine(to *bytes.Buffer, e entry) error { return json.NewEncoder(to).Encode(e) }

// appendTo appends m's frames, and gives the checksum of compressed ones.
func (m *member) appendTo(out []byte) (_ []byte, xxh64 string, err error) {
	header := m.header
	if header == nil {
		if header, err = tarHeader(m.name, int64(len(m.data))); err != nil {
			return nil, "", err
		}
	}
	out = append(out, rawFrame(header)...)
	frames := m.frames
	if frames == nil {
		if frames = rawFrame(m.data); m.compress {
			if frames, err = chunks(m.data); err != nil {
				return nil, "", err
			}
		}
	}
	out = append(out, frames...)
	if m.compress {
		xxh64 = hex.EncodeToString(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(frames)))
	}
	pad := m.pad
	if pad == nil {
		pad = rawFrame(make([]byte, -len(m.data)&511))
	}
	return append(out, pad...), xxh64, nil
}

// tarHeader is the one header that the format knows for a name and a size.
func tarHeader(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	})
	return b.Bytes(), err
}

// rawFrame is data in a zstd frame of raw blocks; nothing for no data.
func rawFrame(data []byte) []byte {
	var out []byte
	if len(data) > 0 {
		out = append(out, frameMagic...)
	}
	for len(data) > 0 {
		n := min(len(data), blockSize)
		h := uint32(n) << 3
		if n == len(data) {
			h |= 1
		}
		out = append(append(out, byte(h), byte(h>>8), byte(h>>16)), data[:n]...) //nolint:gosec // its three bytes
		data = data[n:]
	}
	return out
}

// chunks is data in compressed frames.
func chunks(data []byte) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(chunkSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	var out []byte
	for len(data) > 0 {
		n := min(len(data), chunkSize)
		out = e.EncodeAll(data[:n], out)
		data = data[n:]
	}
	return out, e.Close()
}

// indexFrame is the skippable frame at the end, at its offset in the file.
func indexFrame(index []byte, offset int64) []byte {
	sum := sha256.Sum256(index)
	out := binary.LittleEndian.AppendUint32([]byte(skipMagic), uint32(len(index)+8+8+len(sum)+len(endMagic))) //nolint:gosec // far below
	out = append(out, index...)
	out = binary.LittleEndian.AppendUint64(out, uint64(offset+8)) //nolint:gosec // not negative
	out = binary.LittleEndian.AppendUint64(out, uint64(len(index)))
	return append(append(out, sum[:]...), endMagic...)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobName(digest string) string { return blobPrefix + digest[len("sha256:"):] }
