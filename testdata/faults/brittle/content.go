package main

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// open gives a handle's number.
func (d *Disk) open(n *node) uint64 {
	d.last++
	d.handles[d.last] = &handle{node: n}
	return d.last
}

func (c *calls) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	cut := in.Flags&syscall.O_TRUNC != 0
	open := func(d *Disk) fuse.Status {
		n := d.nodes[in.NodeId]
		if cut {
			n.truncate(0)
		}
		out.Fh = d.open(n)
		return fuse.OK
	}
	if cut {
		return c.changing(open)
	}
	return c.looking(open)
}

func (c *calls) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (r fuse.ReadResult, s fuse.Status) {
	s = c.looking(func(d *Disk) fuse.Status {
		data := d.nodes[in.NodeId].data
		from := min(in.Offset, uint64(len(data)))
		r = fuse.ReadResultData(buf[:copy(buf[:min(len(buf), int(in.Size))], data[from:])])
		return fuse.OK
	})
	return r, s
}

func (c *calls) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (n uint32, s fuse.Status) {
	s = c.changing(func(d *Disk) fuse.Status {
		h := d.handles[in.Fh]
		h.wrote = true
		from := int64(in.Offset) //nolint:gosec // files here are small
		if d.strike(Write, h.node) {
			d.bad, d.badAt = h.node, from
		}
		// A write that was cut into several calls is tried again from the one that
		// failed: the place stays bad.
		if d.bad == h.node && from <= d.badAt && d.badAt < from+int64(len(data)) {
			return fuse.Status(eio)
		}
		h.node.write(data, from)
		n = uint32(len(data)) //nolint:gosec // at most 1 MiB
		return fuse.OK
	})
	return n, s
}

func (c *calls) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if in.Mode != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return c.changing(func(d *Disk) fuse.Status {
		if n, end := d.nodes[in.NodeId], int64(in.Offset+in.Length); end > int64(len(n.data)) { //nolint:gosec // files here are small
			n.truncate(end)
		}
		return fuse.OK
	})
}

func (c *calls) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		n := d.nodes[in.NodeId]
		if d.strike(Sync, n) {
			n.failSync()
			return fuse.Status(eio)
		}
		d.syncFile(n)
		return fuse.OK
	})
}

// Flush is one close of a handle, which may have several.
func (c *calls) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return c.looking(func(d *Disk) fuse.Status {
		if h := d.handles[in.Fh]; h != nil && h.wrote && d.strike(Close, h.node) {
			h.node.failSync()
			return fuse.Status(eio)
		}
		return fuse.OK
	})
}

func (c *calls) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	delete(c.disk.handles, in.Fh)
}
