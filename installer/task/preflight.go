package task

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/runtime"
)

// Preflight checks every host and changes nothing. Checks that compare hosts run after the
// facts of all hosts have been gathered.
func Preflight() plan.Task {
	return plan.Task{Name: "check-hosts", Plan: func(s plan.Scope) plan.Fragment {
		var o preflight.Options
		if hasPackages(s) {
			o.Systems = node.Systems(s.Want)
		}
		o.Modules, o.Writes, o.Hosts = node.Modules(s.Want), writes(s), hostNames(s.Peers())
		o.HoldsVIP = (hasBalancers(s) || hasKubeVIP(s)) && s.Exists != nil && s.Exists.Config != nil && part.EndpointOf(s.Exists.Config).VIP == part.EndpointOf(s.Want).VIP
		// Slow checks, which run commands on the host, run in parallel with the others.
		lanes := map[preflight.Where][]steps.Step{}
		var slow, compared []plan.Fragment
		for _, c := range preflight.Checks() {
			step := s.Checks(c.Step(o))
			switch {
			case c.Packages && !hasPackages(s), c.Endpoint && !part.EndpointOf(s.Want).Exists():
			case c.Slow && c.Compares:
				compared = append(compared, plan.On(onHosts(s, c.On), step...))
			case c.Slow:
				slow = append(slow, plan.On(onHosts(s, c.On), step...))
			default:
				lanes[c.On] = append(lanes[c.On], step...)
			}
		}
		compared = append(compared, plan.On(onHosts(s, preflight.OnFirst), lanes[preflight.OnFirst]...))
		return plan.Par(
			plan.On(s.Hosts(), lanes[preflight.Everywhere]...),
			plan.On(nodes(s), lanes[preflight.OnNodes]...),
			plan.Par(slow...),
			plan.Seq(plan.On(s.Peers(), preflight.GatherFacts()), plan.Par(compared...)),
		)
	}}
}

// writes returns what an installation writes to which folders, from the needs of its steps.
func writes(s plan.Scope) []preflight.Write {
	c := s.Want
	var out []preflight.Write
	add := func(what, path string, hosts []manifest.Host, all []manifest.Need, only func(manifest.Need) bool) {
		w := preflight.Write{What: what, Path: path, Hosts: hostNames(hosts)}
		for _, n := range all {
			if only(n) {
				w.Needs = append(w.Needs, n)
			}
		}
		out = append(out, w)
	}
	image := func(n manifest.Need) bool { return n.Kind == manifest.Image }
	plugin := func(n manifest.Need) bool { return strings.HasPrefix(n.Name, "cni-plugins/") }
	program := func(n manifest.Need) bool { return n.Kind == manifest.Binary && !plugin(n) }
	engine := runtime.Of(c)
	ofNodes := slices.Concat(engine.Install.Meta().Needs, kubeadm.Install().Meta().Needs)
	add("programs", "/usr/local/bin", nodes(s), ofNodes, program)
	add("CNI plugins", "/opt/cni/bin", nodes(s), ofNodes, plugin)
	if hasRegistry(s) {
		images := engine.Preload(imageNames(c), registryd.NamesAt(c), nil).Meta().Needs
		add("images", part.RuntimeOf(c).DataDir, nodes(s), images, image)
	} else {
		out = append(out, preflight.Write{What: "images", Path: part.RuntimeOf(c).DataDir, Hosts: hostNames(nodes(s)), PlatformImages: true})
	}
	store := part.StoreOf(c)
	members := s.Only(store.Members)
	if store.Kind == part.Service {
		add("etcd's programs", "/usr/local/bin", members, etcd.Install(c).Meta().Needs, program)
	}
	if store.Kind != part.External {
		out = append(out, preflight.Write{What: "etcd's log", Path: store.DataDir, Hosts: hostNames(members), Bytes: preflight.WALBytes})
	}
	if own := part.RegistryOf(c); own.Kind == part.OwnRegistry {
		registry := s.Only(own.Hosts)
		add("the registry's program", "/usr/local/bin", registry, registryd.Install(c).Meta().Needs, program)
		out = append(out, preflight.Write{What: "the registry's images", Path: own.DataDir, Hosts: hostNames(registry), AllImages: true})
	}
	return out
}

func hostNames(hosts []manifest.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}

// onHosts returns the hosts that a check runs on.
func onHosts(s plan.Scope, w preflight.Where) []manifest.Host {
	switch w {
	case preflight.OnNodes:
		return nodes(s)
	case preflight.OnBalancers:
		if hasKubeVIP(s) {
			return s.Role(manifest.RoleMaster)
		}
		return s.Role(manifest.RoleLoadBalancer)
	case preflight.OnFirst:
		hosts := s.Hosts()
		return hosts[:min(1, len(hosts))]
	}
	return s.Hosts()
}
