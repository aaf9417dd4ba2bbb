package engine

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Key names a step on a host, as Passed does.
func Key(node, host string) string { return node + "@" + host }

// Resumable gives the steps on hosts, by node and host, that need not be looked at
// again in a run of g, where seen tells which of them an earlier run saw done. Of
// those it takes away what only looks, and what leaves nothing that could be looked
// at: both are about how things are now. What gives an output that a step reads
// which is not passed over is carried out too: outputs last for one run.
func Resumable(g *plan.Graph, seen func(node, host string) bool) map[string]bool {
	passed := map[string]bool{}
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		for _, h := range n.Hosts {
			if !m.LooksOnly && !m.Always && seen(n.ID, h.Name) {
				passed[Key(n.ID, h.Name)] = true
			}
		}
	}
	for again := true; again; {
		again = false
		read := map[string]bool{} // by what is carried out
		for _, n := range g.Nodes {
			if slices.ContainsFunc(n.Hosts, func(h manifest.Host) bool { return !passed[Key(n.ID, h.Name)] }) {
				for _, k := range n.Step.Meta().Reads {
					read[k.Name()] = true
				}
			}
		}
		for _, n := range g.Nodes {
			gives := slices.ContainsFunc(n.Step.Meta().Writes, func(k steps.AnyKey) bool { return read[k.Name()] })
			for _, h := range n.Hosts {
				if k := Key(n.ID, h.Name); gives && passed[k] {
					delete(passed, k)
					again = true
				}
			}
		}
	}
	return passed
}
