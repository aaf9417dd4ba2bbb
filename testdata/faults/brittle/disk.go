package main

import (
	"sync"
	"syscall"
	"time"
)

// Disk is a file system: what programs see of it, and what the medium has.
type Disk struct {
	mu      sync.Mutex
	nodes   map[uint64]*node // by their numbers
	last    uint64
	handles map[uint64]*handle
	pending []change // of folders, not synced yet, the oldest first
	eager   bool     // any sync takes the changes of all folders along, as a journal does
	strikes
}

// node is a file, a folder or a link.
type node struct {
	id       uint64
	mode     uint32 // with its type
	uid, gid uint32
	links    uint32
	changed  time.Time
	parent   *node // where it was named last, for messages
	name     string

	target string // of a symbolic link
	data   []byte
	kept   []byte         // what the medium has of data
	floor  int64          // the least size since it was synced
	dirty  map[int64]bool // pages that it does not have
	lost   map[int64]bool // pages that a failed sync threw away; programs still see them

	names     map[string]*node // of a folder
	keptNames map[string]*node
}

// handle is an open file.
type handle struct {
	node  *node
	wrote bool
}

// change is what one call does to folders: all of it is kept, or nothing.
type change []entry

// entry is a name in a folder from now on; nil is none.
type entry struct {
	in   *node
	name string
	is   *node
}

// page is how much a disk keeps or loses at once.
const page = 4096

// New gives an empty disk. On an eager one a sync of any file or folder takes all
// changes of folders before it along, as the journals of ext4 and xfs do.
func New(eager bool) *Disk {
	d := &Disk{nodes: map[uint64]*node{}, handles: map[uint64]*handle{}, eager: eager}
	d.make(syscall.S_IFDIR|0o755, 0, 0)
	return d
}

func (d *Disk) root() *node { return d.nodes[1] }

// make gives a node that has no name yet.
func (d *Disk) make(mode, uid, gid uint32) *node {
	d.last++
	n := &node{id: d.last, mode: mode, uid: uid, gid: gid, changed: time.Now(), dirty: map[int64]bool{}, lost: map[int64]bool{}}
	if n.isDir() {
		n.names, n.keptNames = map[string]*node{}, map[string]*node{}
	}
	d.nodes[n.id] = n
	return n
}

func (n *node) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// path is where n is, or was last.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.path() + "/" + n.name
}

// apply changes folders for programs, and has the medium owe it.
func (d *Disk) apply(c change) {
	for _, e := range c {
		e.in.changed = time.Now()
		if was := e.in.names[e.name]; was != nil {
			was.links--
		}
		if e.is == nil {
			delete(e.in.names, e.name)
			continue
		}
		e.in.names[e.name] = e.is
		e.is.parent, e.is.name = e.in, e.name
		e.is.links++
	}
	d.pending = append(d.pending, c)
}

// keep puts a change on the medium.
func (c change) keep() {
	for _, e := range c {
		if e.is == nil {
			delete(e.in.keptNames, e.name)
		} else {
			e.in.keptNames[e.name] = e.is
		}
	}
}

// syncFolder keeps the changes of a folder, and what has to be before them.
func (d *Disk) syncFolder(n *node) {
	if d.eager {
		d.syncAll()
		return
	}
	// From the youngest on: whatever touches a folder that counts makes its own count.
	counts := map[*node]bool{n: true}
	kept := make([]bool, len(d.pending))
	for i := len(d.pending) - 1; i >= 0; i-- {
		for _, e := range d.pending[i] {
			kept[i] = kept[i] || counts[e.in]
		}
		for _, e := range d.pending[i] {
			counts[e.in] = counts[e.in] || kept[i]
		}
	}
	var rest []change
	for i, c := range d.pending {
		if kept[i] {
			c.keep()
		} else {
			rest = append(rest, c)
		}
	}
	d.pending = rest
}

func (d *Disk) syncAll() {
	for _, c := range d.pending {
		c.keep()
	}
	d.pending = nil
}

// syncFile keeps a file's content.
func (d *Disk) syncFile(n *node) {
	n.kept = resize(n.kept, int64(len(n.data)))
	for p := range n.dirty {
		n.keepPage(p)
	}
	clear(n.dirty)
	n.floor = int64(len(n.data))
	if d.eager {
		d.syncAll()
	}
}

func (n *node) keepPage(p int64) {
	if from := p * page; from < int64(len(n.data)) && from < int64(len(n.kept)) {
		copy(n.kept[from:], n.data[from:min(int64(len(n.data)), from+page)])
	}
}

// failSync throws away what is dirty, and says nothing of it ever again.
func (n *node) failSync() {
	for p := range n.dirty {
		n.lost[p] = true
	}
	clear(n.dirty)
}

// write puts bytes into a file.
func (n *node) write(b []byte, at int64) {
	if end := at + int64(len(b)); end > int64(len(n.data)) {
		n.truncate(end)
	}
	copy(n.data[at:], b)
	for p := at / page; p*page < at+int64(len(b)); p++ {
		n.dirty[p] = true
		delete(n.lost, p)
	}
	n.changed = time.Now()
}

// truncate gives a file another size. The size is dirty with the page at its end.
func (n *node) truncate(size int64) {
	old := int64(len(n.data))
	n.data = resize(n.data, size)
	n.floor = min(n.floor, size)
	for p := min(old, size) / page; p <= max(old, size)/page; p++ {
		if p*page < size {
			n.dirty[p] = true
		} else {
			delete(n.dirty, p)
		}
	}
	n.dirty[size/page] = true
	n.changed = time.Now()
}

// resize cuts b, or adds zeros.
func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		clear(b[size:]) // what is added later is zeros
		return b[:size]
	}
	if size <= int64(cap(b)) {
		return b[:size]
	}
	grown := make([]byte, size, size+size/2)
	copy(grown, b)
	return grown
}

// Forget gives programs what the medium has of the pages that a failed sync threw
// away, as they do once memory is short.
func (d *Disk) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		for p := range n.lost {
			n.forgetPage(n.data, p)
		}
		clear(n.lost)
	}
}
