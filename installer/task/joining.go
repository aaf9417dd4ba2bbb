package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

// CheckHealth waits, before hosts join, until the API servers are ready, and before a master
// joins until all etcd members are healthy.
func CheckHealth() plan.Task {
	return plan.Task{Name: "check-health", Plan: func(s plan.Scope) plan.Fragment {
		masters := joined(s, s.WithoutTargets().Role(manifest.RoleMaster))
		checks := plan.On(masters, gate.API(s.Want))
		if changesStore(s) {
			checks = plan.Seq(checks, plan.On(s.Lead(), gate.Store(storeBefore(s))))
		}
		if joining := joiningMembers(s); len(joining) > 0 {
			checks = plan.Seq(checks, plan.On(remainingMember(s), gate.RemainingStore(s.Want, joining)))
		}
		return checks
	}}
}

// AnnounceHosts writes the names of joining hosts into /etc/hosts of all other hosts, and lets
// the hosts that serve the time answer them.
func AnnounceHosts() plan.Task {
	return plan.Task{Name: "announce-hosts", Plan: func(s plan.Scope) plan.Fragment { return plan.QualifyIDs("others", updateOthers(s)) }}
}

// CheckJoined waits until each node that joined is Ready, its kubelet answers the API server, and
// the pods of DaemonSets on it are ready.
func CheckJoined() plan.Task {
	return plan.Task{Name: "check-joined", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Each(nodes(s), func(h manifest.Host) plan.Fragment { return plan.On(s.Lead(), gate.Node(h, s.Set)) })
	}}
}

// HardenMasters writes the files that API servers read, before masters join.
func HardenMasters() plan.Task {
	return plan.Task{Name: "harden-masters", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleMaster), controlplane.Harden(s.Want))
	}}
}

// UpdateKubeadm updates the configuration that kubeadm stores in the cluster if masters or etcd members
// join or leave: it lists the names in the certificates of API servers, and the members of an etcd
// that runs as a service.
func UpdateKubeadm() plan.Task {
	return plan.Task{Name: "update-kubeadm", When: func(s plan.Scope) bool { return changesMasters(s) || changesMembers(s) }, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Lead(), kubeadm.UpdateConfig(s.Want))
	}}
}

// UpdateBalancers makes the load balancers on hosts of their own forward to masters that joined,
// and know those of their kind that did.
func UpdateBalancers() plan.Task {
	return plan.Task{Name: "update-load-balancers", When: func(s plan.Scope) bool { return hasBalancers(s) && (changesMasters(s) || changesBalancers(s)) },
		Plan: updateBalancerHosts}
}

// OnAllHosts plans a task for all hosts of the cluster, not only for those that join: what is
// done already is only checked.
func OnAllHosts(t plan.Task) plan.Task {
	return plan.Task{Name: t.Name, When: func(s plan.Scope) bool { return t.When == nil || t.When(s.WithoutTargets()) },
		Plan: func(s plan.Scope) plan.Fragment { return t.Plan(s.WithoutTargets()) }}
}

// changesMasters reports whether a master joins or leaves.
func changesMasters(s plan.Scope) bool {
	for _, h := range s.Leaving() {
		if part.Masters.In(s.Before, h.Name) {
			return true
		}
	}
	return len(s.Targets) > 0 && len(s.Role(manifest.RoleMaster)) > 0
}

// changesBalancers reports whether a host of the role loadbalancer joins or leaves.
func changesBalancers(s plan.Scope) bool {
	for _, h := range s.Leaving() {
		if part.Balancers.In(s.Before, h.Name) {
			return true
		}
	}
	return len(s.Targets) > 0 && len(s.Role(manifest.RoleLoadBalancer)) > 0
}

// changesStore reports whether kubeadm adds or removes an etcd member.
func changesStore(s plan.Scope) bool {
	return changesMasters(s) && part.StoreOf(s.Want).Kind == part.Stacked
}

// storeBefore returns the cluster whose etcd members exist before the hosts join: a run that was
// interrupted may have added some of the others.
func storeBefore(s plan.Scope) *manifest.Cluster {
	if s.Exists == nil {
		return s.Want
	}
	var fresh []string
	for _, h := range s.Want.Spec.Hosts {
		if _, was := s.Exists.Host(h.Name); !was {
			fresh = append(fresh, h.Name)
		}
	}
	return s.Want.Without(fresh)
}

// joined returns those of some hosts that the cluster record lists; all without a record.
func joined(s plan.Scope, all []manifest.Host) []manifest.Host {
	if s.Exists == nil {
		return all
	}
	var out []manifest.Host
	for _, h := range all {
		if _, was := s.Exists.Host(h.Name); was {
			out = append(out, h)
		}
	}
	return out
}

// RecordMembership is Record for a change of hosts without a bundle: what was applied to the
// hosts that stay is unchanged.
func RecordMembership() plan.Task {
	return plan.Task{Name: "record", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.On(s.Lead(), cluster.FetchKubeconfig(s.Want), cluster.Record(), cluster.ReadRecord()),
			plan.On(s.WithoutTargets().Role(manifest.RoleMaster), cluster.WriteCopy()),
			plan.On(s.Lead(), cluster.WriteApplied()),
		)
	}}
}
