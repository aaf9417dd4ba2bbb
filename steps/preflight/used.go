package preflight

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

func usedChecks() []Check {
	return []Check{
		{
			Name: "preflight.existing-installation", Question: "whether the host has another Kubernetes installation", Levels: "error, warning", Slow: true,
			Limits: "none, unless the host is already part of this cluster; a configuration of another pod network is a warning, and an error if a container runtime would use it instead of the cluster's",
			Reads:  "files of /etc/kubernetes, /var/lib/kubelet and /etc/cni/net.d, kubelet.service, processes, etcd's data folder", Source: "kubexm installs over no other Kubernetes; containerd uses the first file of /etc/cni/net.d by name",
			look: checkExisting,
		},
		{
			Name: "preflight.ports", Question: "whether the ports of the host's roles are free", Levels: "error", Slow: true,
			Limits: "none in use, unless the host is already part of this cluster", Reads: "ss -lntup, otherwise /proc/net", Source: "the ports that kubelet, kube-proxy, control plane, etcd and registry listen on",
			look: checkPorts,
		},
		{
			Name: "preflight.packages", Question: "whether packages can be installed from the bundle", Levels: "error, warning, note", Packages: true, Slow: true,
			Limits: "the bundle has packages for this release; none is broken; no other program is changing packages; no package of the bundle is held", Reads: "the package database and its locks", Source: "docs/packages.md",
			look: checkPackages, needs: repositories,
		},
	}
}

// ports returns the ports that the host will listen on, each with its program.
func ports(h *steps.Host) map[uint16]string {
	want := map[uint16]string{}
	for _, p := range part.Ports(h.Cluster) {
		if slices.ContainsFunc(p.On, func(g part.Group) bool { return g.In(h.Cluster, h.Name) }) {
			want[p.Number] = p.Of
		}
	}
	return want
}

// checkPorts finds required ports that are in use. On a host that is already part of
// this cluster they are in use by the cluster itself.
func checkPorts(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours {
		return nil, err
	}
	var out steps.Findings
	want := ports(h)
	for _, p := range h.Facts.Ports {
		who, ok := want[p.Port]
		if !ok || p.Proto != "tcp" {
			continue
		}
		by := "an unknown process"
		if p.Process != "" {
			by = fmt.Sprintf("%s (process %d)", p.Process, p.PID)
		}
		out = append(out, steps.Finding{
			What:   fmt.Sprintf("port %d, which %s needs, is taken by %s", p.Port, who, by),
			Advice: fmt.Sprintf("stop it; ss -tlnp 'sport = :%d' on the host shows details", p.Port),
		})
		delete(want, p.Port)
	}
	return append(out, takenFromCache(h)...), nil
}

// takenFromCache finds programs that listen on all addresses at a port of the DNS cache, which
// listens on an address of its own. A name server on another address is none of them.
func takenFromCache(h *steps.Host) steps.Findings {
	if !part.HasNodeCache(h.Cluster) || !node(h) {
		return nil
	}
	var out steps.Findings
	seen := map[uint16]bool{}
	for _, p := range h.Facts.Ports {
		at, ok := part.NodeCachePorts()[p.Port]
		if !ok || seen[p.Port] || p.Proto != "tcp" && p.Port != 53 || !p.Address.IsUnspecified() && p.Address.Unmap().String() != at {
			continue
		}
		seen[p.Port] = true
		by := "an unknown process"
		if p.Process != "" {
			by = fmt.Sprintf("%s (process %d)", p.Process, p.PID)
		}
		out = append(out, steps.Finding{
			What:   fmt.Sprintf("port %d of %s, which the DNS cache needs, is taken by %s on %s", p.Port, at, by, p.Address),
			Advice: "have it listen on certain addresses only, or stop it, or set spec.dns.nodelocaldns.enabled to false",
		})
	}
	return out
}

// checkExisting finds files and processes of a Kubernetes that is not this cluster's.
func checkExisting(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours {
		return nil, err
	}
	var out steps.Findings
	bad := func(format string, list []string) {
		if len(list) > 0 {
			out = append(out, steps.Finding{What: fmt.Sprintf(format, names(list)), Advice: "if it is no longer needed, remove it with kubexm reset -f CONFIG, or clean the host by hand"})
		}
	}
	var left, networks, runs []string
	if node(h) {
		left, networks = leftovers(h.Facts.Traces)
		for _, p := range h.Facts.Processes {
			if p.Name != "etcd" || member(h) {
				runs = append(runs, fmt.Sprintf("%s (process %d)", p.Name, p.PID))
			}
		}
		for _, u := range h.Facts.Units {
			if u.Name == "kubelet.service" {
				left = append(left, u.Path)
			}
		}
	}
	if data := path.Join(h.Cluster.Spec.Etcd.DataDir, "member"); member(h) {
		exists, err := h.Exists(ctx, data)
		if err != nil {
			return nil, err
		}
		if exists {
			left = append(left, data)
		}
	}
	bad("has files of another Kubernetes: %s", left)
	bad("runs another Kubernetes: %s", runs)
	if len(networks) > 0 {
		first := networks[0] <= part.NetworkOf(h.Cluster).ConfFile // the runtime uses the first
		out = append(out, steps.Finding{What: "/etc/cni/net.d contains the configuration of another pod network: " + names(networks), Advice: "move the files out of the folder", Warning: !first})
	}
	return out, nil
}
