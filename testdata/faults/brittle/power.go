package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// LosePower gives what the medium has when the power goes now. What it was not told to
// keep is there or not by rng.
func (d *Disk) LosePower(rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := map[*node]map[string]*node{} // d stays as it is
	for _, n := range d.nodes {
		kept[n] = maps.Clone(n.keptNames)
	}
	for _, c := range d.pending[:d.survive(rng)] {
		c.keep()
	}
	out := New(d.eager)
	out.copyFolder(d.root(), out.root(), rng, map[*node]*node{})
	for n, names := range kept {
		n.keptNames = names
	}
	return out
}

// survive is how many of the changes of folders that were not synced are there.
func (d *Disk) survive(rng *rand.Rand) int {
	switch all := len(d.pending); rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return all
	default:
		return rng.IntN(all + 1)
	}
}

func (d *Disk) copyFolder(from, to *node, rng *rand.Rand, seen map[*node]*node) {
	var names []string
	for name := range from.keptNames {
		names = append(names, name)
	}
	slices.Sort(names) // the same rng does the same
	for _, name := range names {
		old := from.keptNames[name]
		n := seen[old]
		if n == nil {
			n = d.make(old.mode, old.uid, old.gid)
			n.target, n.changed, seen[old] = old.target, old.changed, n
			if old.isDir() {
				d.copyFolder(old, n, rng, seen)
			} else if old.mode&syscall.S_IFMT == syscall.S_IFREG {
				n.kept = old.survives(rng)
				n.data = slices.Clone(n.kept)
				n.floor = int64(len(n.data))
			}
		}
		to.names[name], to.keptNames[name] = n, n
		n.parent, n.name = to, name
		n.links++
	}
}

// survives is the content that the medium has of a file.
func (n *node) survives(rng *rand.Rand) []byte {
	if len(n.dirty) == 0 {
		return slices.Clone(n.kept)
	}
	seen := slices.Clone(n.data)
	for p := range n.lost { // gone, whatever comes
		n.forgetPage(seen, p)
	}
	switch rng.IntN(4) {
	case 0: // as when it was synced last
		return slices.Clone(n.kept)
	case 1: // all was written back just before
		return seen
	case 2: // a part from the front; what was there before has not become shorter
		k := rng.Int64N(int64(len(seen)) + 1)
		for p := range n.dirty {
			if p*page+page > k && k < n.floor {
				n.forgetPage(seen, p)
			}
		}
		return resize(seen, max(k, n.floor))
	}
	var dirty []int64 // the size, and some of the pages
	for p := range n.dirty {
		dirty = append(dirty, p)
	}
	slices.Sort(dirty)
	for _, p := range dirty {
		if rng.IntN(2) == 0 {
			n.forgetPage(seen, p)
		}
	}
	return seen
}

// forgetPage puts into b what the medium has of a page.
func (n *node) forgetPage(b []byte, p int64) {
	from := p * page
	if from >= int64(len(b)) {
		return
	}
	to := min(int64(len(b)), from+page)
	clear(b[from:to])
	if from < int64(len(n.kept)) {
		copy(b[from:to], n.kept[from:])
	}
}
