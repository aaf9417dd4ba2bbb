package network

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// Cilium installs cilium's chart. See docs/network.md for the values that kubexm sets.
func Cilium(c *manifest.Cluster, at addon.Names) steps.Step {
	return installChart(c, "network.install-cilium", at)
}

// WaitCilium waits until cilium runs on all nodes, and its operator runs.
func WaitCilium(c *manifest.Cluster) steps.Step { return waitChart(c, "network.wait-cilium") }

// installChart returns a step that installs the plugin's chart, with the values of part.NetworkChart. It
// does not wait for the plugin's pods: when it runs, not all nodes have joined.
func installChart(c *manifest.Cluster, step string, at addon.Names) steps.Step {
	chart, _ := part.NetworkChart(c)
	release := addon.Release(chart, at)
	release.NoWait = true
	return op.Ensure(step, []op.Resource{release}, func(m *steps.Meta) {
		m.Timeout, m.Retry = 5*time.Minute, steps.Retry{Times: 2, Wait: 5 * time.Second}
	})
}

// waitChart returns a step that waits until the plugin runs on all nodes, and what it needs besides its
// DaemonSet runs.
func waitChart(c *manifest.Cluster, step string) steps.Step {
	return kubectl.WaitFor(step, nil, func(context.Context, *steps.Host) ([]byte, error) {
		return workloads(part.NetworkOf(c)), nil
	})
}

// workloads names the plugin's workloads, in the form of a manifest.
func workloads(n part.Network) []byte {
	var b strings.Builder
	add := func(kind, name string) {
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", kind, name, n.Namespace)
	}
	for _, name := range n.Deployments {
		add("Deployment", name)
	}
	add("DaemonSet", n.DaemonSet)
	return []byte(b.String())
}
