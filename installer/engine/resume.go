package engine

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Key identifies a step on a host in Passed.
func Key(node, host string) string { return node + "@" + host }

// Resumable returns the keys of the steps on hosts that need not be checked again in a run of
// g; seen reports which of them an earlier run saw done. It excludes checks, waits and steps
// that leave nothing to check, because they are about the current state. It also excludes
// steps whose output is read by a step that runs: outputs last for one run only.
func Resumable(g *plan.Graph, seen func(node, host string) bool) map[string]bool {
	passed := map[string]bool{}
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		for _, h := range n.Hosts {
			if !m.ReadOnly && !m.Always && seen(n.ID, h.Name) {
				passed[Key(n.ID, h.Name)] = true
			}
		}
	}
	for again := true; again; {
		again = false
		read := map[string]bool{} // by the steps that run
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
