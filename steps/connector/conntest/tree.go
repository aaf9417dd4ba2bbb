package conntest

import (
	"cmp"
	"path"
)

// tree is the files of a Sim by their paths. Hosts have hundreds, and are asked thousands of times what is in a
// folder.
type tree struct {
	at map[string]*File
	in map[string]map[string]bool // names by folder, whether that exists or not
}

func newTree() tree { return tree{at: map[string]*File{}, in: map[string]map[string]bool{}} }

func (t tree) put(p string, f *File) {
	if t.at[p] = f; p == "/" {
		return
	}
	dir := path.Dir(p)
	if t.in[dir] == nil {
		t.in[dir] = map[string]bool{}
	}
	t.in[dir][path.Base(p)] = true
}

func (t tree) drop(p string) {
	delete(t.at, p)
	dir := path.Dir(p)
	if delete(t.in[dir], path.Base(p)); len(t.in[dir]) == 0 {
		delete(t.in, dir)
	}
}

// below lists all paths below a folder; "" is the top.
func (t tree) below(dir string) (out []string) {
	for name := range t.in[cmp.Or(dir, "/")] {
		p := dir + "/" + name
		out = append(append(out, p), t.below(p)...)
	}
	return out
}
