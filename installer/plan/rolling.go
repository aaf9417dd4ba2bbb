package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Each makes a fragment for each host and puts them side by side. The ids of its nodes
// end in the host's name.
func Each(hosts []manifest.Host, f func(manifest.Host) Fragment) Fragment {
	return Par(onEach(hosts, f)...)
}

// Roll visits hosts one at a time: the next begins when the one before ended well. The
// ids of its nodes end in the host's name.
func Roll(hosts []manifest.Host, f func(manifest.Host) Fragment) Fragment {
	return Seq(onEach(hosts, f)...)
}

func onEach(hosts []manifest.Host, f func(manifest.Host) Fragment) []Fragment {
	fs := make([]Fragment, len(hosts))
	for i, h := range hosts {
		fs[i] = f(h).under(h.Name)
	}
	return fs
}

// Batch says how many hosts a rolling change visits at once. The zero Batch is one.
type Batch struct {
	First   int // hosts of the first batch, the canaries; 0: as many as of any other
	Size    int // hosts of a batch
	Percent int // of all hosts, rounded down to at least one; counts where Size is 0
}

// cut divides hosts into batches, in their order.
func (b Batch) cut(hosts []manifest.Host) [][]manifest.Host {
	size := b.Size
	if size == 0 {
		size = len(hosts) * b.Percent / 100
	}
	size = max(size, 1)
	next := size
	if b.First > 0 {
		next = b.First
	}
	var out [][]manifest.Host
	for len(hosts) > 0 {
		n := min(next, len(hosts))
		out, hosts, next = append(out, hosts[:n:n]), hosts[n:], size
	}
	return out
}

// Batches visits hosts some at a time, in their order: a batch begins when the one
// before ended well, and between(n), n from 1, stands after batch n and before the next.
// It may be nil. The ids of the nodes end in the batch's number.
func Batches(hosts []manifest.Host, by Batch, each func([]manifest.Host) Fragment, between func(n int) Fragment) Fragment {
	var parts []Fragment
	for i, batch := range by.cut(hosts) {
		if i > 0 && between != nil {
			parts = append(parts, between(i).under(strconv.Itoa(i)))
		}
		parts = append(parts, each(batch).under(strconv.Itoa(i+1)))
	}
	return Seq(parts...)
}

// Part names a part of a task: by that a step is told from the same step in another part,
// such as a gate that a task has before and after a change. The ids of its nodes end in
// the name.
func Part(name string, f Fragment) Fragment { return f.under(name) }

// InSet has the steps of f open the artifacts of a set of the lock, where no InSet
// within f says otherwise. The ids of its nodes end in the set's name.
func InSet(set string, f Fragment) Fragment {
	for _, n := range f.all() {
		if n.Set == "" {
			n.Set = set
		}
	}
	return f.under(set)
}

// under puts name before what tells the nodes of f from others that are alike.
func (f Fragment) under(name string) Fragment {
	for _, n := range f.all() {
		if n.suffix != "" {
			n.suffix = "/" + n.suffix
		}
		n.suffix = name + n.suffix
	}
	return f
}

// String is the batch as a person types it; "" is the default.
func (b Batch) String() string {
	switch {
	case b.Percent > 0:
		return strconv.Itoa(b.Percent) + "%"
	case b.Size > 0:
		return strconv.Itoa(b.Size)
	}
	return ""
}

// ParseBatch reads "3", or "10%".
func ParseBatch(text string) (Batch, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 1, percent && n > 100:
		return Batch{}, fmt.Errorf("%q is neither a number of hosts, such as 3, nor a percentage from 1%% to 100%%", text)
	case percent:
		return Batch{Percent: n}, nil
	}
	return Batch{Size: n}, nil
}
