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
			Name: "preflight.selinux", Question: "whether SELinux is enforcing", Levels: "warning", On: OnNodes,
			Limits: "none", Reads: "getenforce", Source: "an enforcing policy can deny mounts to a container runtime; kubexm sets a node to permissive unless spec.system.keep contains selinux",
			look: byFacts(checkSELinux),
		},
		{
			Name: "preflight.firewall", Question: "whether a firewall is active", Levels: "warning",
			Limits: "none", Reads: "systemctl is-active of firewalld, ufw, nftables", Source: "a firewall without rules for the cluster's ports blocks its traffic; kubexm stops it unless spec.system.keep contains firewall",
			look: byFacts(checkFirewall),
		},
		{
			Name: "preflight.swap", Question: "whether swap is on", Levels: "error, warning", On: OnNodes,
			Limits: "error if spec.system.keep contains swap and the kubelet is not configured to accept it", Reads: "/proc/swaps", Source: "a kubelet does not start with swap on unless failSwapOn is false; kubexm turns swap off otherwise",
			look: byFacts(checkSwap),
		},
	}
}

func checkSELinux(h *steps.Host) steps.Findings {
	if h.Facts.SELinux != "enforcing" {
		return nil
	}
	if h.Cluster.Spec.System.Keeps(manifest.KeepSELinux) {
		return steps.Findings{{What: "SELinux is enforcing, and spec.system.keep preserves that", Advice: "check that a policy for containerd and the kubelet is installed (container-selinux)", Warning: true}}
	}
	return steps.Findings{{What: "SELinux is enforcing; kubexm sets it to permissive", Advice: "no action needed, or add selinux to spec.system.keep", Warning: true}}
}

func checkFirewall(h *steps.Host) steps.Findings {
	if len(h.Facts.Firewalls) == 0 {
		return nil
	}
	which := strings.Join(h.Facts.Firewalls, ", ")
	if h.Cluster.Spec.System.Keeps(manifest.KeepFirewall) {
		return steps.Findings{{What: fmt.Sprintf("a firewall is active (%s), and spec.system.keep preserves it", which), Advice: "check that its rules allow the cluster's ports and the pod network", Warning: true}}
	}
	return steps.Findings{{What: fmt.Sprintf("a firewall is active (%s); kubexm stops it", which), Advice: "no action needed, or add firewall to spec.system.keep and open the cluster's ports", Warning: true}}
}

func checkSwap(h *steps.Host) steps.Findings {
	if len(h.Facts.Swaps) == 0 {
		return nil
	}
	which := strings.Join(h.Facts.Swaps, ", ")
	if !h.Cluster.Spec.System.Keeps(manifest.KeepSwap) {
		return steps.Findings{{What: "swap is on (" + which + "); kubexm turns it off", Advice: "no action needed, or add swap to spec.system.keep", Warning: true}}
	}
	if toleratesSwap(h) {
		return nil
	}
	return steps.Findings{{What: "swap is on (" + which + "), spec.system.keep preserves it, and the kubelet would not start", Advice: "remove swap from spec.system.keep, or set spec.kubernetes.kubelet.extraArgs.fail-swap-on to false"}}
}

// toleratesSwap reports whether the config lets kubelets start with swap on.
func toleratesSwap(h *steps.Host) bool {
	for _, a := range h.Cluster.Spec.Kubernetes.Kubelet.ExtraArgs {
		if a.Name == "fail-swap-on" {
			return a.Value == "false"
		}
	}
	return false
}
