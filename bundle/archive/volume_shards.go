package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"runtime"

	"github.com/klauspost/reedsolomon"
	"golang.org/x/sync/errgroup"
)

// shardMemory is the maximum size of the buffers of all shards together: computing parity
// takes the same memory for volumes of any size.
const shardMemory = 8 << 20

// shardStep is the number of bytes of each of n shards in memory.
func shardStep(n int) int64 {
	return min(1<<20, max(4<<10, shardMemory/int64(n)&^(4<<10-1)))
}

// shard is one volume during coding: read if it exists, written if it is rebuilt.
type shard struct {
	in   io.ReaderAt
	out  io.WriterAt
	size int64
	sum  hash.Hash
	head []byte
	buf  []byte
}

func newShards(n int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		shards[i] = &shard{sum: sha256.New(), buf: make([]byte, shardStep(n))}
	}
	return shards
}

// take reads n bytes at off, with zeros after the shard's end.
func (s *shard) take(off, n int64) error {
	s.buf = s.buf[:n]
	have := max(0, min(n, s.size-off))
	clear(s.buf[have:])
	if k, err := s.in.ReadAt(s.buf[:have], off); int64(k) < have {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	s.note(off, have)
	return nil
}

// give writes the rebuilt bytes of the shard at off.
func (s *shard) give(off int64) error {
	have := max(0, min(int64(len(s.buf)), s.size-off))
	if _, err := s.out.WriteAt(s.buf[:have], off); err != nil {
		return err
	}
	s.note(off, have)
	return nil
}

func (s *shard) note(off, n int64) {
	s.sum.Write(s.buf[:n])
	if off == 0 {
		s.head = append([]byte(nil), s.buf[:min(n, headProbe)]...)
	}
}

func (s *shard) digest() string { return digestPrefix + hex.EncodeToString(s.sum.Sum(nil)) }

// fill reads the volumes and completes t with their digests. It computes the parity and
// writes it to made.
func (t *VolumeTable) fill(ctx context.Context, volumes, made []*os.File, progress func(int64)) error {
	shards := newShards(len(volumes) + len(made))
	for i, v := range t.all() {
		shards[i].size = v.Size
		if i < len(volumes) {
			shards[i].in = volumes[i]
		} else {
			shards[i].out = made[i-len(volumes)]
		}
	}
	if len(made) == 0 {
		for _, s := range shards { // sequentially, which is fastest for a disk
			if err := walkShards(ctx, []*shard{s}, s.size, nil, progress); err != nil {
				return err
			}
		}
	} else {
		code, err := reedsolomon.New(len(volumes), len(made))
		if err != nil {
			return err
		}
		if err := walkShards(ctx, shards, shards[0].size, code.Encode, progress); err != nil {
			return err
		}
	}
	for i, s := range shards {
		list, at := t.Volumes, i
		if i >= len(t.Volumes) {
			list, at = t.Parity, i-len(t.Volumes)
		}
		list[at].Digest, list[at].Head = s.digest(), headSum(s.head)
	}
	return nil
}

// walkShards processes all shards step by step: it reads those that exist, computes the
// others with code, and writes these.
func walkShards(ctx context.Context, shards []*shard, size int64, code func([][]byte) error, progress func(int64)) error {
	step := int64(cap(shards[0].buf))
	for off := int64(0); off < size; off += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(step, size-off)
		if err := eachShard(shards, func(s *shard) error {
			if s.in == nil {
				s.buf = s.buf[:n]
				return nil
			}
			if progress != nil {
				progress(max(0, min(n, s.size-off)))
			}
			return s.take(off, n)
		}); err != nil {
			return err
		}
		if code == nil {
			continue
		}
		bufs := make([][]byte, len(shards))
		for i, s := range shards {
			bufs[i] = s.buf
		}
		if err := code(bufs); err != nil {
			return err
		}
		if err := eachShard(shards, func(s *shard) error {
			if s.out == nil {
				return nil
			}
			return s.give(off)
		}); err != nil {
			return err
		}
	}
	return nil
}

func eachShard(shards []*shard, do func(*shard) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range shards {
		g.Go(func() error { return do(s) })
	}
	return g.Wait()
}

// reconstruct returns the function that computes the shards at lost from the others.
func (t *VolumeTable) reconstruct(lost []int) (func([][]byte) error, error) {
	code, err := reedsolomon.New(len(t.Volumes), len(t.Parity))
	if err != nil {
		return nil, err
	}
	return func(bufs [][]byte) error {
		size := len(bufs[0])
		for _, i := range lost {
			bufs[i] = bufs[i][:0] // empty, with capacity
		}
		if err := code.Reconstruct(bufs); err != nil {
			return err
		}
		for _, i := range lost {
			if len(bufs[i]) != size {
				return errors.New("the erasure code did not rebuild every volume")
			}
		}
		return nil
	}, nil
}
