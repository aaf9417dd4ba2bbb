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
			Name: "preflight.existing-installation", Asks: "whether a Kubernetes of somebody else's is there", Levels: "error, warning", Slow: true,
			Limits: "none, on a host that is not part of this cluster already; a configuration of another pod network is a warning, and an error where a container runtime would take it before the cluster's own",
			Reads:  "files of /etc/kubernetes, /var/lib/kubelet and /etc/cni/net.d, kubelet.service, processes, etcd's data folder", Source: "the deployment matrix; containerd takes the first file of /etc/cni/net.d by name",
			look: checkExisting,
		},
		{
			Name: "preflight.ports", Asks: "whether the ports of the host's roles are free", Levels: "error", Slow: true,
			Limits: "none, on a host that is not part of this cluster already", Reads: "ss -lntup, else /proc/net", Source: "what kubelet, kube-proxy, control plane, etcd and registry listen on",
			look: checkPorts,
		},
		{
			Name: "preflight.packages", Asks: "whether packages can be installed from the bundle", Levels: "error, warning, note", Packages: true, Slow: true,
			Limits: "the bundle has packages of this release; none is broken; nobody else changes packages at the moment; none that the bundle brings is held", Reads: "the package database and its locks", Source: "docs/packages.md",
			look: checkPackages, needs: repositories,
		},
	}
}

// ports are what the host is going to listen on.
func ports(h *steps.Host) map[uint16]string {
	want := map[uint16]string{}
	for _, p := range part.Ports(h.Cluster) {
		if slices.ContainsFunc(p.On, func(g part.Group) bool { return g.In(h.Cluster, h.Name) }) {
			want[p.Number] = p.Of
		}
	}
	return want
}

// checkPorts finds ports that something else listens on. On a host that is part of
// this cluster already they are its own.
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
		by := "something"
		if p.Process != "" {
			by = fmt.Sprintf("%s (process %d)", p.Process, p.PID)
		}
		out = append(out, steps.Finding{
			What:   fmt.Sprintf("port %d, which %s needs, is taken by %s", p.Port, who, by),
			Advice: fmt.Sprintf("stop it: `ss -tlnp 'sport = :%d'` there tells more", p.Port),
		})
		delete(want, p.Port)
	}
	return out, nil
}

// checkExisting finds a Kubernetes that is not this cluster's.
func checkExisting(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours {
		return nil, err
	}
	var out steps.Findings
	bad := func(format string, list []string) {
		if len(list) > 0 {
			out = append(out, steps.Finding{What: fmt.Sprintf(format, names(list)), Advice: "if nobody needs it: kubexm reset -f CONFIG, or clean the host by hand"})
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
	bad("holds another Kubernetes: %s", left)
	bad("runs another Kubernetes: %s", runs)
	if len(networks) > 0 {
		first := networks[0] <= part.NetworkOf(h.Cluster).ConfFile // the runtime takes the first
		out = append(out, steps.Finding{What: "/etc/cni/net.d holds the configuration of another pod network: " + names(networks), Advice: "move it away", Warning: !first})
	}
	return out, nil
}
