package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Guard holds the undo steps of a Fragment, by host.
type Guard struct {
	hosts []manifest.Host
	back  map[string]Fragment // by host name
	of    string              // the host that the whole fragment is for; "": each step is for its own host
}

// HostOf returns the host whose undo steps run after a failure on host.
func (g *Guard) HostOf(host string) string {
	if g.of != "" {
		return g.of
	}
	return host
}

// ForOneHost reports whether the whole fragment is for one host.
func (g *Guard) ForOneHost() bool { return g.of != "" }

// UndoNodes returns the undo nodes of a host, in the order in which they run one after another.
// Some may run on other hosts.
func (g *Guard) UndoNodes(host string) []*Node { return g.back[host].nodes }

// Guarded runs back on each host on which a step of f failed, after all running steps have
// ended and the failed step is undone. The steps of back must be idempotent, read and write no
// outputs, and have no undo steps themselves. Their ids end in "back/" and the host's name.
// The lead has no undo steps: a failed step on it concerns the cluster.
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

// GuardedFor is Guarded for a fragment that is about one host and also has steps on others,
// such as a drain through a master: back runs once, whichever of them failed. It also runs if
// the run ends after f has changed something and before f is complete, because another host
// failed or the run was stopped.
func GuardedFor(h manifest.Host, f, back Fragment) Fragment {
	g := &Guard{hosts: []manifest.Host{h}, back: map[string]Fragment{h.Name: back.under("back/" + h.Name)}, of: h.Name}
	for _, n := range f.nodes {
		n.Guards = append(n.Guards, g)
	}
	return f
}

// all returns the nodes of f, followed by their undo nodes.
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

// all returns the nodes of g, followed by their undo nodes.
func (g *Graph) all() []*Node { return Fragment{nodes: g.Nodes}.all() }
