package preflight

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

func systemChecks() []Check {
	return []Check{
		{
			Name: "preflight.selinux", Asks: "whether SELinux enforces", Levels: "warning", On: OnNodes,
			Limits: "none", Reads: "getenforce", Source: "it keeps a container runtime from mounts; a node is set to permissive unless spec.system.keep names selinux",
			look: byFacts(checkSELinux),
		},
		{
			Name: "preflight.firewall", Asks: "whether a firewall is active", Levels: "warning",
			Limits: "none", Reads: "systemctl is-active of firewalld, ufw, nftables", Source: "a firewall that does not know the cluster's ports cuts it; it is stopped unless spec.system.keep names firewall",
			look: byFacts(checkFirewall),
		},
		{
			Name: "preflight.swap", Asks: "whether swap is on", Levels: "error, warning", On: OnNodes,
			Limits: "error where spec.system.keep names swap and the kubelet is not told to accept it", Reads: "/proc/swaps", Source: "a kubelet does not start with swap on unless failSwapOn is false; swap is turned off otherwise",
			look: byFacts(checkSwap),
		},
	}
}

func checkSELinux(h *steps.Host) steps.Findings {
	if h.Facts.SELinux != "enforcing" {
		return nil
	}
	if h.Cluster.Spec.System.Keeps(manifest.KeepSELinux) {
		return steps.Findings{{What: "SELinux enforces, and spec.system.keep leaves it so", Advice: "see to it that its policy lets containerd and the kubelet work (container-selinux)", Warning: true}}
	}
	return steps.Findings{{What: "SELinux enforces; it will be set to permissive", Advice: "nothing, or name selinux in spec.system.keep", Warning: true}}
}

func checkFirewall(h *steps.Host) steps.Findings {
	if len(h.Facts.Firewalls) == 0 {
		return nil
	}
	which := strings.Join(h.Facts.Firewalls, ", ")
	if h.Cluster.Spec.System.Keeps(manifest.KeepFirewall) {
		return steps.Findings{{What: fmt.Sprintf("a firewall is active (%s), and spec.system.keep leaves it on", which), Advice: "see to it that it lets the cluster's ports and its pods' network pass", Warning: true}}
	}
	return steps.Findings{{What: fmt.Sprintf("a firewall is active (%s); it will be stopped", which), Advice: "nothing, or name firewall in spec.system.keep and open the cluster's ports", Warning: true}}
}

func checkSwap(h *steps.Host) steps.Findings {
	if len(h.Facts.Swaps) == 0 {
		return nil
	}
	which := strings.Join(h.Facts.Swaps, ", ")
	if !h.Cluster.Spec.System.Keeps(manifest.KeepSwap) {
		return steps.Findings{{What: "swap is on (" + which + "); it will be turned off", Advice: "nothing, or name swap in spec.system.keep", Warning: true}}
	}
	if toleratesSwap(h) {
		return nil
	}
	return steps.Findings{{What: "swap is on (" + which + "), spec.system.keep leaves it on, and the kubelet would not start", Advice: "take swap out of spec.system.keep, or set spec.kubernetes.kubelet.extraArgs.fail-swap-on to false"}}
}

// toleratesSwap tells whether the config has kubelets start with swap on.
func toleratesSwap(h *steps.Host) bool {
	for _, a := range h.Cluster.Spec.Kubernetes.Kubelet.ExtraArgs {
		if a.Name == "fail-swap-on" {
			return a.Value == "false"
		}
	}
	return false
}
