package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Blob is one blob of a layout.
type Blob struct {
	Digest   string // "sha256:…"
	Size     int64  // bytes
	Compress bool   // whether the content is worth compressing
}

// Member is one entry of an archive, as listed in its index.
type Member struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"` // "sha256:…" of the data; empty for the signature slot
	Size   int64  `json:"size"`             // bytes of data
	Offset int64  `json:"offset"`           // first byte of its frames in the file
	Length int64  `json:"length"`           // bytes of all its frames
	XXH64  string `json:"xxh64,omitempty"`  // of the compressed data frames; empty for a stored member
}

// Stored reports whether the data is in the file uncompressed, apart from block headers.
func (m *Member) Stored() bool { return m.XXH64 == "" }

// Layout is the place of every part of an archive that follows from sizes alone, that is,
// of everything except the compressed blobs.
type Layout struct {
	small      [][]byte // contents of the entries before the slot
	members    []Member // in file order; compressed ones without offset
	compressed int      // index of the first compressed entry
	storedEnd  int64
}

// NewLayout computes the layout of an archive. head has the contents of the head's blobs in
// their order; blobs may be in any order. It returns ErrDuplicate for a duplicate digest,
// ErrInput for an invalid one, and ErrLimit for a size or count beyond the format's limits.
func NewLayout(ociLayout, indexJSON []byte, head [][]byte, blobs []Blob) (*Layout, error) {
	if n := len(head) + len(blobs) + 3; n > maxMembers {
		return nil, fault(ErrLimit, "", noOffset, "%d entries, the limit is %d", n, maxMembers)
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

// pendingXXH64 is the checksum of a compressed entry until it is known.
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

// place sets the offset of every stored entry and checks the result.
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

// checkMembers checks names, sizes, order and count of a layout's or an index's entries.
func checkMembers(members []Member) error {
	if len(members) > maxMembers {
		return fault(ErrLimit, "", noOffset, "%d entries, the limit is %d", len(members), maxMembers)
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
	// order allows one descent in the names: it must be where compression begins.
	for i := 1; i < len(members); i++ {
		a, b := &members[i-1], &members[i]
		if i > o.slotAt+1 && a.Stored() == b.Stored() && b.Name < a.Name {
			return fault(ErrOrder, b.Name, b.Offset, "not sorted by digest")
		}
	}
	return o.end()
}

// StoredEnd is the offset at which the compressed blobs begin; the size of the file up to
// it is known.
func (l *Layout) StoredEnd() int64 { return l.storedEnd }

// MaxSize is the maximum size of the file in bytes; exact if nothing is compressed.
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

// Members lists the entries in file order. Compressed ones have no offset yet, and zeros as
// checksum.
func (l *Layout) Members() []Member { return slices.Clone(l.members) }
