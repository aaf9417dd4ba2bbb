package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/network"
	"github.com/mensylisir/kubexm/steps/node"
)

// CheckDeparture checks, before hosts leave, that the remaining API servers and etcd members are
// healthy, and that the pods of the leaving nodes can be evicted. Then it records which
// workloads are available.
func CheckDeparture() plan.Task {
	return plan.Task{Name: "check-departure", When: leaves, Plan: func(s plan.Scope) plan.Fragment {
		checks := []plan.Fragment{plan.On(s.Role(manifest.RoleMaster), gate.API(s.Want))}
		if lost := leavingMembers(s); len(lost) > 0 {
			checks = append(checks, plan.On(s.Lead(), gate.RemainingStore(s.Before, lost)))
		}
		if lost := leavingServices(s); len(lost) > 0 {
			checks = append(checks, plan.On(remainingMember(s), gate.RemainingStore(s.Before, lost)))
		}
		var all []steps.Step
		if live := nodes(s.Departing()); len(live) > 0 {
			all = append(all, cluster.RehearseDrain(live, departureDrain(s)))
		}
		return plan.Seq(plan.Seq(checks...), plan.On(s.Lead(), append(all, gate.NoteWorkloads())...))
	}}
}

// ReleaseHosts makes the remaining hosts independent of those that leave: no load balancer
// forwards to a leaving master, and no host knows its name.
func ReleaseHosts() plan.Task {
	return plan.Task{Name: "release-hosts", When: leaves, Plan: func(s plan.Scope) plan.Fragment {
		var balancers, endpoint plan.Fragment
		if hasBalancers(s) && (changesMasters(s) || changesBalancers(s)) {
			balancers = updateBalancerHosts(s)
		}
		if changesMasters(s) {
			endpoint = followEndpoint(s)
		}
		return plan.Seq(balancers, updateOthers(s), endpoint)
	}}
}

// RemoveNodes takes the leaving hosts out of the cluster one after another: it drains the node, ends
// its API server, removes its etcd member, removes Kubernetes from the host, and deletes what the
// cluster knows of it. Nothing runs on a host that does not answer.
func RemoveNodes() plan.Task {
	return plan.Task{Name: "remove-nodes", When: leaves, Plan: func(s plan.Scope) plan.Fragment {
		return plan.Roll(leavingNodes(s), func(h manifest.Host) plan.Fragment {
			var released, removed, reset plan.Fragment
			deleted := plan.On(s.Lead(), cluster.DeletePods(h))
			if !slices.Contains(s.Away, h.Name) {
				released = plan.Seq(plan.On(s.Lead(), cluster.DrainNode(h, departureDrain(s))), stopMaster(s, h))
				reset = plan.Seq(resetNode(s, h), deleted)
			} else {
				released = deleted
			}
			if part.Masters.In(s.Before, h.Name) && part.StoreOf(s.Before).Kind == part.Stacked {
				removed = plan.On(s.Lead(), etcd.RemoveMember(s.Before, h), gate.RemainingStore(s.Before, leavingMembers(s)))
			}
			return plan.Seq(released, removed, reset, plan.On(s.Lead(), cluster.DeleteNode(h)))
		})
	}}
}

// ResetDeparted removes Kubernetes from the leaving hosts, without the cluster's help.
func ResetDeparted() plan.Task {
	return plan.Task{Name: "reset-nodes", When: leaves, Plan: func(s plan.Scope) plan.Fragment {
		return plan.Each(leavingNodes(s), func(h manifest.Host) plan.Fragment {
			if !part.Masters.In(s.Before, h.Name) {
				return resetNode(s, h)
			}
			return plan.Seq(plan.On(one(h), withoutKubeVIP(s.Departing())...), resetNode(s, h))
		})
	}}
}

// leavingNodes returns the leaving hosts that run a kubelet.
func leavingNodes(s plan.Scope) []manifest.Host {
	return slices.DeleteFunc(s.Leaving(), func(h manifest.Host) bool { return !part.Nodes.In(s.Before, h.Name) })
}

// stopMaster ends the API server of a master, and what depends on it, while the other masters serve.
func stopMaster(s plan.Scope, h manifest.Host) plan.Fragment {
	if !part.Masters.In(s.Before, h.Name) {
		return plan.Fragment{}
	}
	return plan.On(one(h), append(withoutKubeVIP(s.Departing()), kubeadm.StopAPIServer())...)
}

// resetNode removes Kubernetes from one host.
func resetNode(s plan.Scope, h manifest.Host) plan.Fragment {
	if !part.Masters.In(s.Before, h.Name) {
		return plan.On(one(h), kubeadm.ResetWorker(), kubeadm.Uninstall())
	}
	tools := append([]steps.Step{addon.RemoveHelm(), cluster.RemoveKubeconfig()}, network.Of(s.Before, nil).RemoveTools...)
	return plan.On(one(h), append(tools, kubeadm.ResetMaster(), cluster.RemoveCopy(), kubeadm.Uninstall(), controlplane.RemoveHardening(s.Before))...)
}

// OfDeparting plans a task of a deletion for the hosts that leave the cluster.
func OfDeparting(t plan.Task) plan.Task {
	return plan.Task{Name: t.Name, When: func(s plan.Scope) bool { return leaves(s) && (t.When == nil || t.When(s.Departing())) },
		Plan: func(s plan.Scope) plan.Fragment { return t.Plan(s.Departing()) }}
}

// CheckWorkloads waits until as much of every workload is available as before the hosts left.
func CheckWorkloads() plan.Task {
	return plan.Task{Name: "check-workloads", When: leaves, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Lead(), gate.Workloads(), gate.ForgetWorkloads())
	}}
}

// leaves reports whether hosts leave the cluster.
func leaves(s plan.Scope) bool { return len(s.Leaving()) > 0 }

// leavingMembers returns the hosts whose etcd members leave with their masters.
func leavingMembers(s plan.Scope) []manifest.Host {
	var out []manifest.Host
	for _, h := range s.Leaving() {
		if part.StoreOf(s.Before).Kind == part.Stacked && part.Members.In(s.Before, h.Name) {
			out = append(out, h)
		}
	}
	return out
}

// departureDrain drains nodes that leave the cluster: their pods must find room on the others.
func departureDrain(s plan.Scope) cluster.DrainOptions {
	out := drainOptions(s)
	out.Permanent = true
	return out
}

// updateOthers writes the names and addresses of all hosts of the cluster on the hosts that are
// not targets, and on those that serve the time the list of its clients.
func updateOthers(s plan.Scope) plan.Fragment {
	c := s.Want
	var others, servers []manifest.Host
	for _, h := range s.WithoutTargets().Hosts() {
		if slices.Contains(s.Targets, h.Name) {
			continue
		}
		others = append(others, h)
		if node.TimeOf(c, h.Name).Serves {
			servers = append(servers, h)
		}
	}
	return plan.Par(plan.On(others, node.Names(c)), plan.On(servers, node.SyncTime(c)))
}

// updateBalancerHosts makes the load balancers on hosts of their own forward to the masters of the
// cluster, one after another.
func updateBalancerHosts(s plan.Scope) plan.Fragment {
	all := s.WithoutTargets()
	return plan.Roll(all.Role(manifest.RoleLoadBalancer), func(h manifest.Host) plan.Fragment {
		return plan.On(one(h), loadbalancer.Install(all.Want))
	})
}

// followEndpoint makes the workers use the remaining masters: through their own load balancers, or
// by the name of the endpoint, which may have been a leaving master's. A pod in the host's network
// has a copy of /etc/hosts from its start, so kube-proxy is restarted where that differs.
func followEndpoint(s plan.Scope) plan.Fragment {
	switch {
	case workersBalance(s):
		return BalanceOnWorkers().Plan(s)
	case part.EndpointOf(s.Want).ResolvesToSelf():
		return plan.On(onlyWorkers(s), cluster.RenewWorkerProxy(s.Want))
	}
	return plan.Fragment{}
}
