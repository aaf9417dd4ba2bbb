package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// Preflight looks at every host; it changes nothing. What compares hosts with each
// other comes when all have said what they are.
func Preflight(o preflight.Options) plan.Task {
	return plan.Task{Name: "check-hosts", Plan: func(s plan.Scope) plan.Fragment {
		o := o // each plan has its own hosts
		if hasPackages(s) {
			o.Systems = node.Systems(s.Cluster)
		}
		for _, h := range s.Hosts() {
			o.Hosts = append(o.Hosts, h.Name)
		}
		// Those that take a moment, because the host is asked again, run beside the others.
		lanes := map[preflight.Where][]steps.Step{}
		var slow, compared []plan.Fragment
		for _, c := range preflight.Checks() {
			switch {
			case c.Packages && !hasPackages(s):
			case c.Slow && c.Compares:
				compared = append(compared, plan.On(onHosts(s, c.On), c.Step(o)))
			case c.Slow:
				slow = append(slow, plan.On(onHosts(s, c.On), c.Step(o)))
			default:
				lanes[c.On] = append(lanes[c.On], c.Step(o))
			}
		}
		compared = append(compared, plan.On(onHosts(s, preflight.OnFirst), lanes[preflight.OnFirst]...))
		return plan.Par(
			plan.On(s.Hosts(), lanes[preflight.Everywhere]...),
			plan.On(nodes(s), lanes[preflight.OnNodes]...),
			plan.Par(slow...),
			plan.Seq(plan.On(s.Hosts(), preflight.GatherFacts()), plan.Par(compared...)),
		)
	}}
}

// onHosts gives the hosts that a check is made on.
func onHosts(s plan.Scope, w preflight.Where) []manifest.Host {
	switch w {
	case preflight.OnNodes:
		return nodes(s)
	case preflight.OnFirst:
		hosts := s.Hosts()
		return hosts[:min(1, len(hosts))]
	}
	return s.Hosts()
}
