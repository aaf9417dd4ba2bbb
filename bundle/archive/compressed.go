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

// chunkSize is how much data goes into one zstd frame of a compressed member.
// Chunks are independent, so several may be in work; larger ones gain under
// 0.1 % on executables and cost memory for each worker.
const chunkSize = 2 << 20

// frameOverhead bounds what zstd adds to a chunk that does not compress:
// header, one block header for every 128 KiB and a last one, checksum.
const frameOverhead = 18 + blockHeaderLen*(chunkSize/blockSize+1) + 4

// newEncoder gives the one encoder configuration of the format. Its
// concurrency is 1: EncodeAll then depends on its input alone.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(chunkSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
}

// minCompressedLen and maxCompressedLen bound the frames of a compressed
// member of n bytes.
func minCompressedLen(n int64) int64 {
	return headLen + rawFrameLen(paddingLen(n))
}

func maxCompressedLen(n int64) int64 {
	return minCompressedLen(n) + n + (n+chunkSize-1)/chunkSize*frameOverhead
}

// chunk is a part of a member on its way through the workers.
type chunk struct {
	member  int // index in the layout
	n       int // bytes of data in it
	last    bool
	data    []byte
	out     []byte
	encoded chan struct{}
}

// compressor runs the compressed members through its workers: one goroutine
// reads and hashes, n compress, one writes in order. n+2 chunks exist.
type compressor struct {
	members []Member
	open    Opener
	commit  func(i int, length int64, xxh64 string) // member i is in the file, checked
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

// run compresses members from to the end. Those that were committed before an
// error stay so.
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

// read cuts one member into chunks. The last of them is handed on only after
// the whole was seen to be right.
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
		c.work <- k // room for every chunk there is: neither send blocks
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

// write appends the chunks in their order, each member between its header and
// its padding.
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
