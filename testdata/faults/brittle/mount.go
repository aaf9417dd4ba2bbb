package main

import (
	"fmt"
	"io"
	"log" //nolint:depguard // go-fuse wants one for what it complains of
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount is a disk under a folder.
type Mount struct {
	server *fuse.Server
	dir    string
}

// Mount mounts d over a folder that is there and empty. It needs root and /dev/fuse.
func (d *Disk) Mount(dir string) (*Mount, error) {
	server, err := fuse.NewServer(&calls{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d}, dir, &fuse.MountOptions{
		FsName: "brittle", Name: "brittle", DirectMountStrict: true, DisableXAttrs: true, DisableReadDirPlus: true, MaxWrite: 1 << 20,
		Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return nil, fmt.Errorf("mount at %s: %w", dir, err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return nil, fmt.Errorf("mount at %s: %w", dir, err)
	}
	return &Mount{server, dir}, nil
}

// Unmount takes the disk away again. A process that was killed may have it for a
// moment longer.
func (m *Mount) Unmount() error {
	var err error
	for range 200 {
		if err = m.server.Unmount(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("unmount %s: %w", m.dir, &os.SyscallError{Syscall: "umount", Err: err})
}

// calls answers the kernel.
type calls struct {
	fuse.RawFileSystem
	disk *Disk
}

// lasting is how long the kernel may believe what it was told: nobody but it changes
// the disk.
const lasting = time.Hour

func (c *calls) String() string { return "brittle" }

// changing runs what changes the disk, while it has power.
func (c *calls) changing(f func(d *Disk) fuse.Status) fuse.Status {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if !c.disk.step() {
		return fuse.Status(eio)
	}
	return f(c.disk)
}

// looking runs what only reads.
func (c *calls) looking(f func(d *Disk) fuse.Status) fuse.Status {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if c.disk.off {
		return fuse.Status(eio)
	}
	return f(c.disk)
}

func (n *node) attr(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: n.id, Size: uint64(len(n.data)), Blocks: (uint64(len(n.data)) + 511) / 512, Mode: n.mode, Nlink: max(n.links, 1),
		Owner: fuse.Owner{Uid: n.uid, Gid: n.gid}, Blksize: page,
	}
	out.SetTimes(&n.changed, &n.changed, &n.changed)
}

func (n *node) entry(out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(lasting)
	out.SetAttrTimeout(lasting)
	n.attr(&out.Attr)
}

func (c *calls) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return c.looking(func(d *Disk) fuse.Status {
		n := d.nodes[h.NodeId].names[name]
		if n == nil {
			return fuse.ENOENT
		}
		n.entry(out)
		return fuse.OK
	})
}

func (c *calls) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return c.looking(func(d *Disk) fuse.Status {
		out.SetTimeout(lasting)
		d.nodes[in.NodeId].attr(&out.Attr)
		return fuse.OK
	})
}

func (c *calls) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		n := d.nodes[in.NodeId]
		if size, ok := in.GetSize(); ok {
			n.truncate(int64(size)) //nolint:gosec // files here are small
		}
		if mode, ok := in.GetMode(); ok {
			n.mode = n.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
		}
		if uid, ok := in.GetUID(); ok {
			n.uid = uid
		}
		if gid, ok := in.GetGID(); ok {
			n.gid = gid
		}
		if t, ok := in.GetMTime(); ok {
			n.changed = t
		}
		out.SetTimeout(lasting)
		n.attr(&out.Attr)
		return fuse.OK
	})
}

func (c *calls) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const blocks = 64 << 30 / page // more than anybody needs
	*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: 1 << 20, Ffree: 1 << 20, Bsize: page, Frsize: page, NameLen: 255}
	return fuse.OK
}

func (c *calls) Readlink(_ <-chan struct{}, h *fuse.InHeader) (out []byte, s fuse.Status) {
	s = c.looking(func(d *Disk) fuse.Status {
		out = []byte(d.nodes[h.NodeId].target)
		return fuse.OK
	})
	return out, s
}

func (c *calls) OpenDir(_ <-chan struct{}, _ *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	return c.looking(func(*Disk) fuse.Status { return fuse.OK })
}

func (c *calls) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, list *fuse.DirEntryList) fuse.Status {
	return c.looking(func(d *Disk) fuse.Status {
		all := sorted(d.nodes[in.NodeId].names)
		for i := int(in.Offset); i < len(all); i++ { //nolint:gosec // an index
			n := d.nodes[in.NodeId].names[all[i]]
			if !list.AddDirEntry(fuse.DirEntry{Name: all[i], Ino: n.id, Mode: n.mode, Off: uint64(i) + 1}) { //nolint:gosec // an index
				break
			}
		}
		return fuse.OK
	})
}

func (c *calls) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return c.changing(func(d *Disk) fuse.Status {
		n := d.nodes[in.NodeId]
		if d.strike(Sync, n) {
			return fuse.Status(eio)
		}
		d.syncFolder(n)
		return fuse.OK
	})
}
