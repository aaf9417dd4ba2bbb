package hostile

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// mutate changes an archive in one of the ways in which files go wrong, or are made
// to. cuts are the places where frames of members begin, and the end.
func mutate(r *rand.Rand, b []byte, cuts []int64) []byte {
	b = bytes.Clone(b)
	at := r.IntN(len(b))
	n := min(1+r.IntN(2000), len(b)-at)
	switch r.IntN(9) {
	case 0: // bits
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	case 1: // bytes
		for i := range n {
			b[at+i] = byte(r.IntN(256)) //nolint:gosec // a byte
		}
	case 2: // a piece lost
		b = slices.Delete(b, at, at+n)
	case 3: // a piece twice
		b = slices.Insert(b, at, b[at:at+n]...)
	case 4: // a piece elsewhere
		piece := bytes.Clone(b[at : at+n])
		b = slices.Delete(b, at, at+n)
		b = slices.Insert(b, r.IntN(len(b)+1), piece...)
	case 5: // zeros
		clear(b[at : at+n])
	case 6: // the end lost
		b = b[:at]
	case 7: // a member's frames twice
		i := r.IntN(len(cuts) - 1)
		b = slices.Insert(b, int(cuts[i]), b[cuts[i]:cuts[i+1]]...)
	case 8: // the frames of two members in each other's place
		i := r.IntN(len(cuts) - 2)
		b = slices.Concat(b[:cuts[i]], b[cuts[i+1]:cuts[i+2]], b[cuts[i]:cuts[i+1]], b[cuts[i+2]:])
	}
	return b
}
