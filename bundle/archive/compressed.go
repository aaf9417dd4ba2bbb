package archive

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// chunkSize is the amount of data in one zstd frame of a compressed entry. Chunks are
// independent, so several can be compressed concurrently. Larger ones save less than 0.1 %
// on executables and cost memory per worker.
const chunkSize = 2 << 20

// frameOverhead is the maximum that zstd adds to an incompressible chunk: header, one block
// header per 128 KiB and a last one, checksum.
const frameOverhead = 18 + blockHeaderLen*(chunkSize/blockSize+1) + 4

// newEncoder returns an encoder with the one configuration of the format. Its concurrency
// is 1, so that EncodeAll depends on its input alone.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(chunkSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
}

// minCompressedLen and maxCompressedLen are the bounds for the frames of a compressed entry
// of n bytes.
func minCompressedLen(n int64) int64 {
	return headLen + rawFrameLen(paddingLen(n))
}

func maxCompressedLen(n int64) int64 {
	return minCompressedLen(n) + n + (n+chunkSize-1)/chunkSize*frameOverhead
}

// chunk is a part of an entry in the workers' pipeline.
type chunk struct {
	member  int // index of the entry in the layout
	n       int // bytes of data in it
	last    bool
	data    []byte
	out     []byte
	encoded chan struct{}
}

// compressor runs the compressed entries through its workers: one goroutine reads and
// hashes, n compress, and one writes in order. There are n+2 chunks.
type compressor struct {
	members []Member
	open    Opener
	commit  func(i int, length int64, xxh64 string) // called when entry i is in the file and checked
	dst     io.WriterAt
	off     int64

	free  chan *chunk
	work  chan *chunk
	order chan *chunk
}

func newCompressor(workers int) *compressor {
	c := &compressor{
		free:  make(chan *chunk, workers+2),
		work:  make(chan *chunk, workers+2),
		order: make(chan *chunk, workers+2),
	}
	for range workers + 2 {
		c.free <- &chunk{encoded: make(chan struct{}, 1)}
	}
	return c
}

// run compresses the entries from index from on. Those committed before an error remain
// committed.
func (c *compressor) run(ctx context.Context, from, workers int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(c.work)
		defer close(c.order)
		for i := from; i < len(c.members); i++ {
			if err := c.read(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error { return c.encode() })
	}
	g.Go(func() error { return c.write(ctx) })
	return g.Wait()
}

// read splits one entry into chunks. It passes on the last chunk only after the digest of
// the complete content was checked.
func (c *compressor) read(ctx context.Context, i int) (err error) {
	m := &c.members[i]
	r, err := c.open(ctx, m.Digest)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	sum := sumOf(r)
	for left := m.Size; ; {
		var k *chunk
		select {
		case k = <-c.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if k.data == nil {
			k.data = make([]byte, chunkSize)
			k.out = make([]byte, 0, chunkSize+frameOverhead)
		}
		k.member, k.n = i, int(min(left, chunkSize))
		if got, err := io.ReadFull(r, k.data[:k.n]); err != nil {
			return shortRead(m, m.Size-left+int64(got), err)
		}
		sum.Write(k.data[:k.n])
		left -= int64(k.n)
		if k.last = left == 0; k.last {
			if err := checkEnd(m, r, sum); err != nil {
				return err
			}
		}
		c.work <- k // capacity for every chunk: neither send blocks
		c.order <- k
		if k.last {
			return nil
		}
	}
}

func (c *compressor) encode() error {
	enc, err := newEncoder()
	if err != nil {
		return err
	}
	for k := range c.work {
		k.out = enc.EncodeAll(k.data[:k.n], k.out[:0])
		k.encoded <- struct{}{}
	}
	return enc.Close()
}

// write appends the chunks in order, each entry between its header and its padding.
func (c *compressor) write(ctx context.Context) error {
	sum := xxhash.New()
	begin := c.off
	started := false
	for k := range c.order {
		select {
		case <-k.encoded:
		case <-ctx.Done():
			return ctx.Err()
		}
		m := &c.members[k.member]
		if !started {
			started = true
			begin = c.off
			sum.Reset()
			head, err := headFrame(m.Name, m.Size)
			if err != nil {
				return err
			}
			if err := c.append(head); err != nil {
				return err
			}
		}
		if err := c.append(k.out); err != nil {
			return err
		}
		_, _ = sum.Write(k.out) // a hash never fails
		if k.last {
			started = false
			if err := c.append(paddingFrame(m.Size)); err != nil {
				return err
			}
			c.commit(k.member, c.off-begin, hexSum(sum))
		}
		c.free <- k
	}
	return nil
}

func (c *compressor) append(b []byte) error {
	n, err := c.dst.WriteAt(b, c.off)
	c.off += int64(n)
	return err
}

func hexSum(sum *xxhash.Digest) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
}
