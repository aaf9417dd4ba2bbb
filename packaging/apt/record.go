package apt

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/kubexm/packaging"
)

// blockSize is the size in bytes of the blocks in which records are compressed.
const blockSize = 256 << 10

// records stores the unchanged index entries of packages, compressed. Uncompressed they
// would use a third of all memory, and only few are read.
type records struct {
	encoder *zstd.Encoder
	open    []byte
	scratch []byte
	blocks  [][]byte
	at      map[*packaging.Package]place
}

// place is the position of a record.
type place struct{ block, offset, size int }

func newRecords() (*records, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(blockSize))
	if err != nil {
		return nil, err
	}
	return &records{encoder: e, at: map[*packaging.Package]place{}}, nil
}

// keep stores a record.
func (r *records) keep(p *packaging.Package, text []byte) {
	r.at[p] = place{len(r.blocks), len(r.open), len(text)}
	if r.open = append(r.open, text...); len(r.open) >= blockSize {
		r.seal()
	}
}

// close writes the last block; no more records can be stored.
func (r *records) close() {
	r.seal()
	r.encoder, r.open, r.scratch = nil, nil, nil
}

func (r *records) seal() {
	r.scratch = r.encoder.EncodeAll(r.open, r.scratch[:0])
	r.blocks = append(r.blocks, slices.Clone(r.scratch))
	r.open = r.open[:0]
}

// fill sets the Record of packages.
func (r *records) fill(packages []*packaging.Package) error {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer d.Close()
	ordered := slices.Clone(packages)
	slices.SortFunc(ordered, func(a, b *packaging.Package) int { return r.at[a].block - r.at[b].block })
	var text []byte
	unpacked := -1
	for _, p := range ordered {
		at, ok := r.at[p]
		if !ok {
			return fmt.Errorf("%s is not in these repositories", p)
		}
		if at.block != unpacked {
			if text, err = d.DecodeAll(r.blocks[at.block], text[:0]); err != nil {
				return err
			}
			unpacked = at.block
		}
		p.Record = slices.Clone(text[at.offset : at.offset+at.size])
	}
	return nil
}
