package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

func usedChecks() []Check {
	return []Check{
		{
			Name: "preflight.existing-installation", Asks: "whether a Kubernetes of somebody else's is there", Levels: "error", Slow: true,
			Limits: "none, on a host that is not part of this cluster already", Reads: "/etc/kubernetes, etcd's data folder", Source: "the deployment matrix",
			look: checkExisting,
		},
		{
			Name: "preflight.ports", Asks: "whether the ports of the host's roles are free", Levels: "error", Slow: true,
			Limits: "none, on a host that is not part of this cluster already", Reads: "ss -lntup, else /proc/net", Source: "what kubelet, kube-proxy, control plane, etcd and registry listen on",
			look: checkPorts,
		},
		{
			Name: "preflight.packages", Asks: "whether packages can be installed from the bundle", Levels: "error", Packages: true, Slow: true,
			Limits: "the bundle has packages of this release; none is broken", Reads: "the package database", Source: "docs/packages.md",
			look: checkPackages,
		},
	}
}

// ports are what the roles listen on.
func ports(h *steps.Host) map[uint16]string {
	want := map[uint16]string{}
	if node(h) {
		want[10250] = "kubelet"
		want[10248] = "kubelet"
		want[10256] = "kube-proxy"
	}
	if is(h, manifest.RoleMaster) {
		want[uint16(h.Cluster.APIServerPort())] = "kube-apiserver" //nolint:gosec // a port
		want[10257] = "kube-controller-manager"
		want[10259] = "kube-scheduler"
	}
	if member(h) {
		want[2379], want[2380], want[2381] = "etcd", "etcd", "etcd"
	}
	if is(h, manifest.RoleRegistry) && h.Cluster.Spec.Registry.Type == "registry" {
		want[registryPort(h.Cluster)] = "the registry"
	}
	return want
}

// registryPort is where the site's registry listens.
func registryPort(c *manifest.Cluster) uint16 {
	_, port, _ := strings.Cut(c.Spec.Registry.PrivateRegistry, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 443 // what https means without a port
	}
	return uint16(n)
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
	var left, traces []string
	if node(h) {
		traces = append(traces, "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf")
	}
	if member(h) {
		traces = append(traces, path.Join(h.Cluster.Spec.Etcd.DataDir, "member"))
	}
	for _, p := range traces {
		_, err := h.Stat(ctx, p)
		if err == nil {
			left = append(left, p)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return steps.Findings{{What: "holds another Kubernetes: " + strings.Join(left, ", "), Advice: "if nobody needs it: kubexm reset -f CONFIG"}}, nil
}
