package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Each creates a fragment for each host and runs them in parallel. The ids of its nodes end in
// the host's name.
func Each(hosts []manifest.Host, f func(manifest.Host) Fragment) Fragment {
	return Par(onEach(hosts, f)...)
}

// Roll processes hosts one at a time: the next starts after the previous one succeeded. The
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

// Batch is how many hosts a rolling change processes at once. The zero Batch is one host.
type Batch struct {
	First   int // size of the first batch, the canaries; 0: as the others
	Size    int // hosts per batch
	Percent int // of all hosts, rounded down, at least one host; used if Size is 0
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

// Batches processes hosts in batches, in their order: a batch starts after the previous one
// succeeded. between(n), n from 1, is placed after batch n and before the next; it may be nil.
// The ids of the nodes end in the batch's number.
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

// QualifyIDs adds a name to the ids of f's nodes. It distinguishes steps that a task has more
// than once, such as a gate before and after a change.
func QualifyIDs(name string, f Fragment) Fragment { return f.under(name) }

// InSet makes the steps of f open the artifacts of a set of the lock, unless an InSet within f
// selects another. The ids of its nodes end in the set's name.
func InSet(set string, f Fragment) Fragment {
	for _, n := range f.all() {
		if n.Set == "" {
			n.Set = set
		}
	}
	return f.under(set)
}

// under prefixes the suffix of the nodes of f with name.
func (f Fragment) under(name string) Fragment {
	for _, n := range f.all() {
		if n.suffix != "" {
			n.suffix = "/" + n.suffix
		}
		n.suffix = name + n.suffix
	}
	return f
}

// String returns the batch as the user types it; "" is the default.
func (b Batch) String() string {
	switch {
	case b.Percent > 0:
		return strconv.Itoa(b.Percent) + "%"
	case b.Size > 0:
		return strconv.Itoa(b.Size)
	}
	return ""
}

// ParseBatch parses "3" or "10%".
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
