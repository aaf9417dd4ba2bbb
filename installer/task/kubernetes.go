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
	"github.com/mensylisir/kubexm/steps/dns"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/network"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// InstallKubernetes installs kubeadm, kubelet and kubectl on every node.
func InstallKubernetes() plan.Task {
	return plan.Task{Name: "install-kubernetes", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(nodes(s), kubeadm.Install())
	}}
}

// InitControlPlane creates the first master, and fetches the administrator's kubeconfig.
// Before that, all masters get the files that their API servers read.
func InitControlPlane() plan.Task {
	return plan.Task{Name: "init-control-plane", Plan: func(s plan.Scope) plan.Fragment {
		harden := plan.On(s.Role(manifest.RoleMaster), controlplane.Harden(s.Want))
		initial := plan.On(s.InitialMaster(), kubeadm.Init(s.Want, loadbalancer.KubeVIPForInit(s.Want)...), kubeadm.FinishAdoption()).AfterOnHosts(harden)
		kubeconfigs := plan.Par(plan.On(s.Lead(), cluster.FetchKubeconfig(s.Want)), plan.On(s.InitialMaster(), cluster.InstallKubeconfig()))
		return plan.Overlap(harden, initial, kubeconfigs.After(harden, initial))
	}}
}

// CheckEndpoint waits until every node reaches the API servers through the load balancer or
// the name in front of them.
func CheckEndpoint() plan.Task {
	return plan.Task{Name: "check-endpoint", When: func(s plan.Scope) bool { return part.EndpointOf(s.Want).Balanced() },
		Plan: func(s plan.Scope) plan.Fragment {
			wait := plan.On(nodes(s), cluster.WaitEndpoint(s.Want))
			if checksReady(s) || hasKubeVIP(s) {
				return wait // the CA was read for the load balancers, or for kube-vip
			}
			return plan.Seq(plan.On(s.Lead(), cluster.ReadAuthority()), wait)
		}}
}

// JoinMasters joins the other masters, one after another: etcd adds one member at a time, and
// meanwhile the API servers wait for it.
func JoinMasters() plan.Task {
	return plan.Task{Name: "join-masters", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Roll(s.AdditionalMasters(), func(h manifest.Host) plan.Fragment {
			one := []manifest.Host{h}
			var mint []steps.Step
			if part.StoreOf(s.Want).Kind == part.Stacked {
				mint = append(mint, kubeadm.ClearMember(s.Want, h))
			}
			mint = append(mint, kubeadm.MintMasterToken(s.Want, h))
			join := append([]steps.Step{kubeadm.JoinMaster(s.Want)}, kubeVIP(s)...)
			if part.EndpointOf(s.Want).ResolvesToSelf() {
				join = append(join, node.AimAtItself(s.Want), cluster.RenewProxy(s.Want))
			}
			return plan.Seq(plan.On(one, kubeadm.PrepareMaster()), plan.On(s.Lead(), mint...), plan.On(one, append(join, cluster.InstallKubeconfig())...))
		})
	}}
}

// InstallNetwork installs the pod network.
func InstallNetwork() plan.Task {
	return plan.Task{Name: "install-network", When: func(s plan.Scope) bool { return part.NetworkOf(s.Want).Supported },
		Plan: func(s plan.Scope) plan.Fragment {
			var helm plan.Fragment
			if part.NetworkOf(s.Want).Chart {
				helm = installHelm(s)
			}
			return plan.Seq(helm, plan.On(s.Lead(), network.Of(s.Want, registryd.NamesAt(s.Want)).Install...))
		}}
}

// installHelm installs helm on masters: any of them may be the lead.
func installHelm(s plan.Scope) plan.Fragment {
	return plan.On(s.Role(manifest.RoleMaster), addon.InstallHelm())
}

// InstallHelm installs helm on masters that join a cluster with charts.
func InstallHelm() plan.Task {
	return plan.Task{Name: "install-helm", When: func(s plan.Scope) bool { return part.NetworkOf(s.Want).Chart || hasCharts(s) }, Plan: installHelm}
}

func hasCharts(s plan.Scope) bool { return slices.ContainsFunc(s.Want.Spec.Addons, isChart) }

// InstallDNSCache runs the DNS cache on each node. Its pods use the network of their host, and do not
// wait for the pod network.
func InstallDNSCache() plan.Task {
	return plan.Task{Name: "install-dns-cache", When: func(s plan.Scope) bool { return part.HasNodeCache(s.Want) },
		Plan: func(s plan.Scope) plan.Fragment { return plan.On(s.Lead(), dns.Cache(s.Want)) }}
}

// JoinWorkers joins workers to a new or an existing cluster: the token is created on the lead,
// the join runs on the targets.
func JoinWorkers() plan.Task {
	return plan.Task{Name: "join-workers", Plan: func(s plan.Scope) plan.Fragment {
		workers := onlyWorkers(s)
		if len(workers) == 0 {
			return plan.Fragment{}
		}
		return plan.Seq(
			plan.On(s.Lead(), kubeadm.MintToken(workers)),
			plan.On(workers, kubeadm.JoinWorker(s.Want)),
		)
	}}
}

// onlyWorkers returns the workers that are not masters.
func onlyWorkers(s plan.Scope) []manifest.Host {
	masters := len(s.Role(manifest.RoleMaster))
	return nodes(s)[masters:]
}

// Configure has the CA sign the kubelets' server certificates, labels the nodes, and waits until all
// are Ready and the pod network runs on them. Then it installs and configures CoreDNS and waits for
// it. Meanwhile it restricts the files that kubeadm, the kubelet and the pod network wrote to root,
// and installs the network's command line client on masters.
func Configure() plan.Task {
	return plan.Task{Name: "configure", Plan: func(s plan.Scope) plan.Fragment {
		var signed plan.Fragment
		if s.Want.KubeletsAreSigned() {
			signed = plan.On(s.Lead(), cluster.SignKubelets(s.Want, nodes(s)))
		}
		plugin := network.Of(s.Want, nil)
		running := append([]steps.Step{cluster.LabelNodes(s.Want, nodes(s)), cluster.WaitNodes(nodes(s))}, plugin.Wait...)
		if part.HasMultus(s.Want) { // it takes up the configuration that the plugin has written on each node
			running = append(running, network.Multus(), network.WaitMultus())
		}
		var resolving []steps.Step
		if s.Want.ConfiguresDNS() {
			resolving = append(resolving, dns.CoreDNS(s.Want))
		}
		resolving = append(resolving, cluster.WaitReady(nodes(s), s.Away))
		if part.HasNodeCache(s.Want) {
			resolving = append(resolving, dns.WaitCache(s.Want))
		}
		up := plan.On(s.Lead(), running...)
		names := plan.Seq(plan.On(s.InitialMaster(), kubeadm.InstallCoreDNS()), plan.On(s.Lead(), resolving...)).After(up)
		restricted := plan.On(nodes(s), controlplane.RestrictFiles(s.Want)).After(signed, up)
		tools := plan.On(s.Role(manifest.RoleMaster), plugin.Tools...).After(up)
		return plan.Overlap(signed, up, names, restricted, tools)
	}}
}

// InstallAddons installs the add-ons in their order, each when the previous one is
// ready: it may depend on it.
func InstallAddons() plan.Task {
	return plan.Task{Name: "install-addons", Plan: func(s plan.Scope) plan.Fragment {
		var helm plan.Fragment
		if hasCharts(s) && !part.NetworkOf(s.Want).Chart { // which has installed it
			helm = installHelm(s)
		}
		var ss []steps.Step
		for _, a := range part.Addons(s.Want) {
			if ss = append(ss, addon.Install(a, registryd.NamesAt(s.Want))); !isChart(a) {
				ss = append(ss, addon.Wait(a))
			}
		}
		return plan.Seq(helm, plan.On(s.Lead(), ss...))
	}}
}

func isChart(a manifest.Addon) bool { return a.Form() == manifest.Chart }

// RemoveAddons is the inverse of InstallAddons. If etcd's data is preserved, the add-ons stay
// in it.
func RemoveAddons() plan.Task {
	return plan.Task{Name: "remove-addons", When: losesData, Plan: func(s plan.Scope) plan.Fragment {
		var ss []steps.Step
		for _, a := range slices.Backward(part.Addons(s.Want)) {
			ss = append(ss, addon.Remove(a))
		}
		return plan.On(s.Lead(), ss...)
	}}
}

// DrainNodes drains the workers.
func DrainNodes() plan.Task {
	return plan.Task{Name: "drain-nodes", When: losesData, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Lead(), cluster.Drain(s.Want))
	}}
}

// preserves reports whether a deletion preserves etcd's data and the images.
func preserves(s plan.Scope) bool { return s.Want.Spec.Etcd.PreserveData }

func losesData(s plan.Scope) bool { return !preserves(s) }

// PreserveKeys records which cluster the preserved data belongs to, before anything is deleted.
func PreserveKeys() plan.Task {
	return plan.Task{Name: "keep-keys", When: preserves, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.InitialMaster(), kubeadm.PreserveKeys(s.Want))
	}}
}

// ResetNodes removes Kubernetes from the nodes: workers first, then masters one after another,
// and last the first master, which the others joined. kube-vip hands the virtual IP to another
// master before its master is reset, which still needs the cluster. The first master needs it too,
// and no other one is left: it gives up the address after its reset.
func ResetNodes() plan.Task {
	return plan.Task{Name: "reset-nodes", Plan: func(s plan.Scope) plan.Fragment {
		further := slices.Clone(s.AdditionalMasters())
		reset := kubeadm.ResetMaster()
		var last []steps.Step
		if preserves(s) {
			reset = kubeadm.ResetMasterPreservingStore()
			if part.StoreOf(s.Want).Kind == part.Stacked && len(further) > 0 {
				last = append(last, kubeadm.CheckAlone())
			}
		}
		tools := append([]steps.Step{addon.RemoveHelm(), cluster.RemoveKubeconfig()}, network.Of(s.Want, nil).RemoveTools...)
		last = append(append(last, tools...), reset)
		last = append(append(last, withoutKubeVIP(s)...), cluster.RemoveCopy(), cluster.RemoveWorkdirState())
		slices.Reverse(further)
		return plan.Seq(
			plan.On(onlyWorkers(s), kubeadm.ResetWorker()),
			plan.Roll(further, func(h manifest.Host) plan.Fragment {
				first := slices.Concat(tools, withoutKubeVIP(s))
				return plan.On([]manifest.Host{h}, append(first, kubeadm.ResetMaster(), cluster.RemoveCopy())...)
			}),
			plan.On(s.InitialMaster(), last...),
			plan.Par(plan.On(nodes(s), kubeadm.Uninstall()), plan.On(s.Role(manifest.RoleMaster), controlplane.RemoveHardening(s.Want))),
		)
	}}
}
