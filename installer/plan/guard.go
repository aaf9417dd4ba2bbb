package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Guard is the way back of a Fragment, host by host.
type Guard struct {
	hosts []manifest.Host
	back  map[string]Fragment // by a host's name
	of    string              // the host that the whole fragment is for; "": each step is for its own
}

// For gives the host whose way back a failure on a host starts.
func (g *Guard) For(host string) string {
	if g.of != "" {
		return g.of
	}
	return host
}

// Back gives the nodes that take a host back, in the order in which they run one after
// another. Some may act on other hosts.
func (g *Guard) Back(host string) []*Node { return g.back[host].nodes }

// Guarded runs back on each host on which a step of f failed, once all that runs has
// ended and the step is undone. The steps of back are idempotent, read and write no
// outputs, and have no way back themselves. Their ids end in "back/" and the host's name.
// The lead has none: what a step there failed at is not the lead's.
func Guarded(f Fragment, back func(manifest.Host) Fragment) Fragment {
	g := &Guard{back: map[string]Fragment{}}
	for _, n := range f.nodes {
		for _, h := range n.Hosts {
			if _, ok := g.back[h.Name]; !ok && !IsLead(h) {
				g.hosts = append(g.hosts, h)
				g.back[h.Name] = back(h).under("back/" + h.Name)
			}
		}
		n.Guards = append(n.Guards, g)
	}
	return f
}

// GuardedFor is Guarded for a fragment that is about one host and has steps on others, too,
// such as a drain that is asked for on a master: back runs once, whichever of them failed.
func GuardedFor(h manifest.Host, f, back Fragment) Fragment {
	g := &Guard{hosts: []manifest.Host{h}, back: map[string]Fragment{h.Name: back.under("back/" + h.Name)}, of: h.Name}
	for _, n := range f.nodes {
		n.Guards = append(n.Guards, g)
	}
	return f
}

// all gives the nodes of f, and after them those of their ways back.
func (f Fragment) all() []*Node {
	out := slices.Clone(f.nodes)
	seen := map[*Guard]bool{}
	for _, n := range f.nodes {
		for _, g := range n.Guards {
			if seen[g] {
				continue
			}
			seen[g] = true
			for _, h := range g.hosts {
				out = append(out, g.back[h.Name].nodes...)
			}
		}
	}
	return out
}

// all gives the nodes of g, and after them those of their ways back.
func (g *Graph) all() []*Node { return Fragment{nodes: g.Nodes}.all() }
