package pipeline

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// ExampleScope returns a scope in which a pipeline has all of its steps for a config: of one that
// changes the hosts of a cluster, the last worker and the last master join or leave, or the last host
// that its arguments may name. It is false if a config has no such host.
func ExampleScope(p plan.Pipeline, c *manifest.Cluster) (plan.Scope, bool) {
	switch {
	case p.Membership == plan.KeepsHosts:
		return ScopeOf(p, c, nil), true
	case p.TargetHosts == nil:
		return ScopeOf(p, c, changedHosts(c)), true
	}
	all := p.TargetHosts(c)
	if len(all) == 0 {
		return plan.Scope{}, false
	}
	return ScopeOf(p, c, []string{all[len(all)-1].Name}), true
}

// ScopeOf returns the scope of a pipeline for the named hosts of a config, without contacting a
// host: those that leave the cluster, or join it, are the named ones; the others are part of it.
// No names mean all hosts that the pipeline can work on.
func ScopeOf(p plan.Pipeline, c *manifest.Cluster, names []string) plan.Scope {
	s := plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version}
	if len(names) == 0 {
		return s
	}
	was := c
	switch p.Membership {
	case plan.KeepsHosts:
		s.Targets = names
		return s
	case plan.RemovesHosts:
		s.Before, s.Want = c, c.Without(names)
	case plan.AddsHosts:
		was, s.Targets = c.Without(names), names
	}
	s.Exists = &manifest.Existing{Config: was}
	for _, h := range was.Spec.Hosts {
		s.Exists.Hosts = append(s.Exists.Hosts, manifest.ExistingHost{Name: h.Name, Joined: part.Nodes.In(was, h.Name)})
	}
	return s
}

// changedHosts returns a worker and a master that a cluster does not need; none of a cluster with
// one node.
func changedHosts(c *manifest.Cluster) []string {
	var out []string
	masters, nodes := part.Masters.Hosts(c), part.Nodes.Hosts(c)
	if len(nodes) > len(masters) {
		out = append(out, nodes[len(nodes)-1].Name)
	}
	if len(masters) > 1 {
		out = append(out, masters[len(masters)-1].Name)
	}
	return out
}
