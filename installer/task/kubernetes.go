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
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/network"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// InstallKubernetes brings kubeadm, kubelet and kubectl to every node.
func InstallKubernetes() plan.Task {
	return plan.Task{Name: "install-kubernetes", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(nodes(s), kubeadm.Install())
	}}
}

// InitControlPlane makes the first master, and fetches its kubeconfig. All masters
// have by then what their API servers read.
func InitControlPlane() plan.Task {
	return plan.Task{Name: "init-control-plane", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(plan.On(s.Role(manifest.RoleMaster), controlplane.Harden(s.Cluster)), plan.On(s.First(manifest.RoleMaster),
			kubeadm.Init(s.Cluster), kubeadm.TakeUp(), cluster.FetchKubeconfig(s.Cluster), cluster.InstallKubeconfig()))
	}}
}

// CheckEndpoint waits until every node reaches the API servers through what the site has
// set up for them.
func CheckEndpoint() plan.Task {
	return plan.Task{Name: "check-endpoint", When: func(s plan.Scope) bool { return part.EndpointOf(s.Cluster).Exists() },
		Plan: func(s plan.Scope) plan.Fragment {
			return plan.Seq(plan.On(s.Whole().First(manifest.RoleMaster), cluster.ReadAuthority()), plan.On(nodes(s), cluster.WaitEndpoint(s.Cluster)))
		}}
}

// JoinMasters joins the other masters, one after another: the store takes in one
// member at a time, and while it does the API servers wait for it.
func JoinMasters() plan.Task {
	return plan.Task{Name: "join-masters", Plan: func(s plan.Scope) plan.Fragment {
		first := s.Whole().First(manifest.RoleMaster)
		return plan.Roll(furtherMasters(s), func(h manifest.Host) plan.Fragment {
			one := []manifest.Host{h}
			var mint []steps.Step
			if part.StoreOf(s.Cluster).Kind == part.Stacked {
				mint = append(mint, kubeadm.ClearMember(s.Cluster, h))
			}
			mint = append(mint, kubeadm.MintMasterToken(s.Cluster, h))
			join := []steps.Step{kubeadm.JoinMaster(s.Cluster)}
			if part.EndpointOf(s.Cluster).Own() {
				join = append(join, node.AimAtItself(s.Cluster), cluster.RenewProxy(s.Cluster))
			}
			return plan.Seq(plan.On(one, kubeadm.PrepareMaster()), plan.On(first, mint...), plan.On(one, append(join, cluster.InstallKubeconfig())...))
		})
	}}
}

// furtherMasters are the masters beside the first.
func furtherMasters(s plan.Scope) []manifest.Host {
	first := s.Whole().First(manifest.RoleMaster)
	return slices.DeleteFunc(slices.Clone(s.Role(manifest.RoleMaster)), func(h manifest.Host) bool { return len(first) > 0 && h.Name == first[0].Name })
}

// InstallNetwork applies the pod network.
func InstallNetwork() plan.Task {
	return plan.Task{Name: "install-network", When: func(s plan.Scope) bool { return part.NetworkOf(s.Cluster).Supported },
		Plan: func(s plan.Scope) plan.Fragment {
			return plan.On(s.Whole().First(manifest.RoleMaster), network.Of(s.Cluster).Install...)
		}}
}

// JoinWorkers serves a new cluster and a new node alike: the token is made on
// the first master, the join runs on the targets.
func JoinWorkers() plan.Task {
	return plan.Task{Name: "join-workers", Plan: func(s plan.Scope) plan.Fragment {
		workers := onlyWorkers(s)
		if len(workers) == 0 {
			return plan.Fragment{}
		}
		return plan.Seq(
			plan.On(s.Whole().First(manifest.RoleMaster), kubeadm.MintToken(workers)),
			plan.On(workers, kubeadm.JoinWorker(s.Cluster)),
		)
	}}
}

// onlyWorkers are the workers that are no masters.
func onlyWorkers(s plan.Scope) []manifest.Host {
	masters := len(s.Role(manifest.RoleMaster))
	return nodes(s)[masters:]
}

// Configure has the CA sign what kubelets serve with, labels the nodes, configures CoreDNS, waits until all is Ready, and
// leaves what was written on the way to root alone.
func Configure() plan.Task {
	return plan.Task{Name: "configure", Plan: func(s plan.Scope) plan.Fragment {
		var ss []steps.Step
		if s.Cluster.KubeletsAreSigned() {
			ss = append(ss, cluster.SignKubelets(s.Cluster))
		}
		ss = append(ss, cluster.LabelNodes(s.Cluster))
		if s.Cluster.ConfiguresDNS() {
			ss = append(ss, cluster.CoreDNS(s.Cluster))
		}
		return plan.Seq(plan.On(s.Whole().First(manifest.RoleMaster), append(ss, cluster.WaitReady(s.Cluster))...), plan.On(nodes(s), controlplane.RestrictFiles(s.Cluster)))
	}}
}

// InstallAddons installs the add-ons in the order of the config, each when the
// one before is ready: what comes later may use what came before.
func InstallAddons() plan.Task {
	return plan.Task{Name: "install-addons", Plan: func(s plan.Scope) plan.Fragment {
		var ss []steps.Step
		if slices.ContainsFunc(s.Cluster.Spec.Addons, isChart) {
			ss = append(ss, addon.InstallHelm())
		}
		for _, a := range s.Cluster.Spec.Addons {
			if ss = append(ss, addon.Install(a, registryd.NamesAt(s.Cluster))); !isChart(a) {
				ss = append(ss, addon.Wait(a))
			}
		}
		return plan.On(s.Whole().First(manifest.RoleMaster), ss...)
	}}
}

func isChart(a manifest.Addon) bool { return a.Form() == manifest.Chart }

// RemoveAddons is the inverse of InstallAddons. Where the store stays, they do in it.
func RemoveAddons() plan.Task {
	return plan.Task{Name: "remove-addons", When: losesData, Plan: func(s plan.Scope) plan.Fragment {
		var ss []steps.Step
		for _, a := range slices.Backward(s.Cluster.Spec.Addons) {
			ss = append(ss, addon.Remove(a))
		}
		return plan.On(s.Whole().First(manifest.RoleMaster), ss...)
	}}
}

// Record keeps what was applied, in the cluster and here.
func Record() plan.Task {
	return plan.Task{Name: "record", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Whole().First(manifest.RoleMaster), cluster.Record(), cluster.KeepApplied())
	}}
}

// DrainNodes moves pods off the workers.
func DrainNodes() plan.Task {
	return plan.Task{Name: "drain-nodes", When: losesData, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Whole().First(manifest.RoleMaster), cluster.Drain(s.Cluster))
	}}
}

// preserves tells whether a deletion leaves etcd's data and the images.
func preserves(s plan.Scope) bool { return s.Cluster.Spec.Etcd.PreserveData }

func losesData(s plan.Scope) bool { return !preserves(s) }

// KeepKeys puts on record what a store that stays is of, before anything goes.
func KeepKeys() plan.Task {
	return plan.Task{Name: "keep-keys", When: preserves, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.First(manifest.RoleMaster), kubeadm.KeepKeys(s.Cluster))
	}}
}

// ResetNodes takes Kubernetes off the nodes: workers, then masters one after
// another, the first one last, which the others were joined to.
func ResetNodes() plan.Task {
	return plan.Task{Name: "reset-nodes", Plan: func(s plan.Scope) plan.Fragment {
		further := furtherMasters(s)
		reset := kubeadm.ResetMaster()
		var last []steps.Step
		if preserves(s) {
			reset = kubeadm.ResetMasterKeepingStore()
			if part.StoreOf(s.Cluster).Kind == part.Stacked && len(further) > 0 {
				last = append(last, kubeadm.CheckAlone())
			}
		}
		last = append(last, addon.RemoveHelm(), cluster.RemoveKubeconfig(), reset, cluster.ForgetHere())
		slices.Reverse(further)
		return plan.Seq(
			plan.On(onlyWorkers(s), kubeadm.ResetWorker()),
			plan.Roll(further, func(h manifest.Host) plan.Fragment {
				return plan.On([]manifest.Host{h}, cluster.RemoveKubeconfig(), kubeadm.ResetMaster())
			}),
			plan.On(s.First(manifest.RoleMaster), last...),
			plan.Par(plan.On(nodes(s), kubeadm.Uninstall()), plan.On(s.Role(manifest.RoleMaster), controlplane.Soften(s.Cluster))),
		)
	}}
}
