package main

import (
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func sorted(names map[string]*node) []string { return slices.Sorted(maps.Keys(names)) }

// add makes a node under a name that has to be free.
func (c *calls) add(h *fuse.InHeader, name string, mode uint32, out *fuse.EntryOut, more func(d *Disk, n *node)) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		in := d.nodes[h.NodeId]
		if in.names[name] != nil {
			return fuse.Status(syscall.EEXIST)
		}
		n := d.make(mode, h.Uid, h.Gid)
		if more != nil {
			more(d, n)
		}
		d.apply(change{{in, name, n}})
		n.entry(out)
		return fuse.OK
	})
}

func (c *calls) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return c.add(&in.InHeader, name, syscall.S_IFDIR|in.Mode&0o7777, out, nil)
}

func (c *calls) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return c.add(&in.InHeader, name, in.Mode, out, nil)
}

func (c *calls) Symlink(_ <-chan struct{}, h *fuse.InHeader, to, name string, out *fuse.EntryOut) fuse.Status {
	return c.add(h, name, syscall.S_IFLNK|0o777, out, func(_ *Disk, n *node) { n.target = to })
}

func (c *calls) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return c.add(&in.InHeader, name, syscall.S_IFREG|in.Mode&0o7777, &out.EntryOut, func(d *Disk, n *node) { out.Fh = d.open(n) })
}

func (c *calls) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		to, n := d.nodes[in.NodeId], d.nodes[in.Oldnodeid]
		if to.names[name] != nil {
			return fuse.Status(syscall.EEXIST)
		}
		if d.strike(Rename, n) { // it gives a name too
			return fuse.Status(eio)
		}
		d.apply(change{{to, name, n}})
		n.entry(out)
		return fuse.OK
	})
}

func (c *calls) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		in := d.nodes[h.NodeId]
		if in.names[name] == nil {
			return fuse.ENOENT
		}
		d.apply(change{{in, name, nil}})
		return fuse.OK
	})
}

func (c *calls) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		in := d.nodes[h.NodeId]
		n := in.names[name]
		switch {
		case n == nil:
			return fuse.ENOENT
		case len(n.names) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		}
		d.apply(change{{in, name, nil}})
		return fuse.OK
	})
}

// noReplace is RENAME_NOREPLACE.
const noReplace = 1

func (c *calls) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		from, to := d.nodes[in.NodeId], d.nodes[in.Newdir]
		n, was := from.names[oldName], to.names[newName]
		switch {
		case n == nil:
			return fuse.ENOENT
		case in.Flags&^noReplace != 0:
			return fuse.EINVAL
		case was != nil && in.Flags&noReplace != 0:
			return fuse.Status(syscall.EEXIST)
		case was != nil && len(was.names) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		case was == n:
			return fuse.OK
		case d.strike(Rename, n):
			return fuse.Status(eio)
		}
		d.apply(change{{from, oldName, nil}, {to, newName, n}})
		return fuse.OK
	})
}
