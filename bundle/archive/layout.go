package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Blob is one blob to lay out.
type Blob struct {
	Digest   string // "sha256:…"
	Size     int64  // bytes
	Compress bool   // whether zstd is worth its time on these bytes
}

// Member is one entry of an archive, as its index lists it.
type Member struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"` // "sha256:…" of the data; empty for the signature slot
	Size   int64  `json:"size"`             // bytes of data
	Offset int64  `json:"offset"`           // first byte of its frames in the file
	Length int64  `json:"length"`           // bytes of all its frames
	XXH64  string `json:"xxh64,omitempty"`  // of the compressed data frames; empty for a stored member
}

// Stored says whether the data lies in the file as it is, but for the headers
// of its blocks.
func (m *Member) Stored() bool { return m.XXH64 == "" }

// Layout is the place of everything in an archive that is to be written, as
// far as sizes alone tell: all of it but the compressed blobs.
type Layout struct {
	small      [][]byte // contents of the members before the slot
	members    []Member // in file order; compressed ones without place
	compressed int      // the first compressed one
	storedEnd  int64
}

// NewLayout lays out an archive. head holds the contents of the head's blobs in
// their order; blobs may come in any order. A digest that occurs twice, a bad
// digest or a size outside the format's bounds is refused with ErrInput,
// ErrDuplicate or ErrLimit.
func NewLayout(ociLayout, indexJSON []byte, head [][]byte, blobs []Blob) (*Layout, error) {
	if n := len(head) + len(blobs) + 3; n > maxMembers {
		return nil, fault(ErrLimit, "", noOffset, "%d members, at most %d are possible", n, maxMembers)
	}
	l := &Layout{small: append([][]byte{ociLayout, indexJSON}, head...)}
	for i, data := range l.small {
		l.members = append(l.members, smallMember(i, data))
	}
	l.members = append(l.members, Member{Name: slotName, Size: slotSize})
	sorted := slices.Clone(blobs)
	slices.SortFunc(sorted, func(a, b Blob) int {
		if a.Compress != b.Compress {
			if b.Compress {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Digest, b.Digest)
	})
	for _, b := range sorted {
		if err := checkDigest(b.Digest); err != nil {
			return nil, fault(ErrInput, "", noOffset, "digest %q: %v", b.Digest, err)
		}
		m := Member{Name: blobName(b.Digest), Digest: b.Digest, Size: b.Size}
		if b.Compress {
			m.XXH64 = pendingXXH64
		}
		l.members = append(l.members, m)
	}
	if err := l.place(); err != nil {
		return nil, err
	}
	return l, nil
}

// pendingXXH64 stands for the checksum of a compressed member until it is known.
const pendingXXH64 = "0000000000000000"

func smallMember(i int, data []byte) Member {
	sum := sha256.Sum256(data)
	m := Member{Digest: digestPrefix + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	switch i {
	case 0:
		m.Name = layoutName
	case 1:
		m.Name = indexName
	default:
		m.Name = blobName(m.Digest)
	}
	return m
}

// place gives every stored member its offset and checks the whole.
func (l *Layout) place() error {
	l.compressed = len(l.members)
	for i := range l.members {
		m := &l.members[i]
		if !m.Stored() {
			l.compressed = min(l.compressed, i)
			continue
		}
		m.Offset, m.Length = l.storedEnd, storedLen(m.Size)
		l.storedEnd += m.Length
	}
	return checkMembers(l.members)
}

// checkMembers enforces what the format says about names, sizes, order and
// count, of a layout as of an index.
func checkMembers(members []Member) error {
	if len(members) > maxMembers {
		return fault(ErrLimit, "", noOffset, "%d members, at most %d are possible", len(members), maxMembers)
	}
	var o order
	for i := range members {
		m := &members[i]
		if err := o.next(m.Name, m.Size); err != nil {
			return err
		}
		if blob := nameDigest(m.Name); blob != "" && blob != m.Digest {
			return fault(ErrIndex, m.Name, m.Offset, "listed with digest %q", m.Digest)
		}
		if m.Stored() {
			continue
		}
		if !o.slot {
			return fault(ErrOrder, m.Name, m.Offset, "compressed before the signature slot")
		}
		if next := i + 1; next < len(members) && members[next].Stored() {
			return fault(ErrOrder, members[next].Name, members[next].Offset, "stored after a compressed one")
		}
	}
	// The one descent that order allows has its place where compression begins.
	for i := 1; i < len(members); i++ {
		a, b := &members[i-1], &members[i]
		if i > o.slotAt+1 && a.Stored() == b.Stored() && b.Name < a.Name {
			return fault(ErrOrder, b.Name, b.Offset, "not sorted by digest")
		}
	}
	return o.end()
}

// StoredEnd is the offset at which the compressed blobs begin; up to there the
// size of the file is known.
func (l *Layout) StoredEnd() int64 { return l.storedEnd }

// MaxSize is the most that the file can take, in bytes; exact when nothing is
// compressed.
func (l *Layout) MaxSize() int64 {
	members := slices.Clone(l.members)
	end := l.storedEnd
	for i := l.compressed; i < len(members); i++ {
		m := &members[i]
		m.Offset, m.Length = end, maxCompressedLen(m.Size)
		end += m.Length
	}
	return end + rawFrameLen(endData) + int64(len(appendIndexFrame(nil, 0, members)))
}

// Members lists what will be written, in file order. The compressed ones have
// no place yet, and zeros for a checksum.
func (l *Layout) Members() []Member { return slices.Clone(l.members) }
