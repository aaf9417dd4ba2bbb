package conntest

import (
	"cmp"
	"path"
	"slices"
)

// tree is the files of a Sim by their paths. Hosts have hundreds, and are asked thousands of times what is in a
// folder.
type tree struct {
	at map[string]*File
	in map[string][]string // sorted names by folder, whether that exists or not
}

func newTree() tree { return tree{at: map[string]*File{}, in: map[string][]string{}} }

func (t tree) put(p string, f *File) {
	if t.at[p] = f; p == "/" {
		return
	}
	dir := path.Dir(p)
	name := path.Base(p)
	if i, ok := slices.BinarySearch(t.in[dir], name); !ok {
		t.in[dir] = slices.Insert(t.in[dir], i, name)
	}
}

func (t tree) drop(p string) {
	delete(t.at, p)
	dir := path.Dir(p)
	i, ok := slices.BinarySearch(t.in[dir], path.Base(p))
	switch {
	case !ok:
	case len(t.in[dir]) == 1:
		delete(t.in, dir)
	default:
		t.in[dir] = slices.Delete(t.in[dir], i, i+1)
	}
}

// below lists all paths below a folder; "" is the top.
func (t tree) below(dir string) (out []string) {
	for _, name := range t.in[cmp.Or(dir, "/")] {
		p := dir + "/" + name
		out = append(append(out, p), t.below(p)...)
	}
	return out
}
