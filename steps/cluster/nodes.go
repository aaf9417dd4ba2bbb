package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// LabelNodes sets the labels and taints of the config on nodes, and the role label on
// workers.
func LabelNodes(c *manifest.Cluster, nodes []manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.label-nodes", Timeout: time.Minute, Retry: steps.Retry{Times: 5, Wait: 2 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			for _, n := range nodes {
				have, err := getNode(ctx, h, n.Name)
				if runner.Refused(err) {
					return false, nil
				}
				if err != nil || !have.has(labels(c, n), n.Taints) {
					return false, err
				}
			}
			return true, nil
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			for _, n := range nodes {
				args := []string{"label", "--overwrite", "node", n.Name}
				want := labels(c, n)
				for _, k := range slices.Sorted(maps.Keys(want)) {
					args = append(args, k+"="+want[k])
				}
				if len(want) > 0 {
					if _, err := kubectl.Run(ctx, h, args...); err != nil {
						return err
					}
				}
				for _, t := range n.Taints {
					if _, err := kubectl.Run(ctx, h, "taint", "--overwrite", "node", n.Name, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// nodes are the hosts that are part of the cluster.
func nodes(c *manifest.Cluster) []manifest.Host {
	var out []manifest.Host
	masters, workers := c.Spec.RoleGroups.Names(manifest.RoleMaster), c.Spec.RoleGroups.Names(manifest.RoleWorker)
	for _, h := range c.Spec.Hosts {
		if slices.Contains(masters, h.Name) || slices.Contains(workers, h.Name) {
			out = append(out, h)
		}
	}
	return out
}

func labels(c *manifest.Cluster, h manifest.Host) map[string]string {
	out := maps.Clone(h.Labels)
	if out == nil {
		out = map[string]string{}
	}
	if c.Spec.RoleGroups.Has(manifest.RoleWorker, h.Name) {
		out["node-role.kubernetes.io/worker"] = ""
	}
	return out
}

// node holds the fields of a Node object that kubexm reads.
type node struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool                                  `json:"unschedulable"`
		Taints        []struct{ Key, Value, Effect string } `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type, Status, Message string } `json:"conditions"`
	} `json:"status"`
}

func getNode(ctx context.Context, h *steps.Host, name string) (node, error) {
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "node", name, "-o", "json")
	if err != nil {
		return node{}, err
	}
	var n node
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		return node{}, fmt.Errorf("node %s: %w", name, err)
	}
	return n, nil
}

func (n node) has(labels map[string]string, taints []manifest.Taint) bool {
	for k, v := range labels {
		if have, ok := n.Metadata.Labels[k]; !ok || have != v {
			return false
		}
	}
	for _, t := range taints {
		if !slices.ContainsFunc(n.Spec.Taints, func(x struct{ Key, Value, Effect string }) bool {
			return x.Key == t.Key && x.Value == t.Value && x.Effect == t.Effect
		}) {
			return false
		}
	}
	return true
}

func (n node) ready() (bool, string) {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True", c.Message
		}
	}
	return false, "the kubelet has not reported yet"
}

// WaitNodes waits until nodes are Ready.
func WaitNodes(nodes []manifest.Host) steps.Step {
	check := func(ctx context.Context, h *steps.Host) (string, error) { return notReady(ctx, nodes, h) }
	return waitFor("kubernetes.wait-nodes", check, "run kubectl get nodes on %s, and kubectl describe node for each that is not Ready")
}

// WaitReady waits until nodes are Ready and CoreDNS answers. Of CoreDNS's pods, those on
// the nodes in away are not waited for: Kubernetes replaces them after five minutes
// (the toleration of node.kubernetes.io/unreachable that every pod has).
func WaitReady(nodes []manifest.Host, away []string) steps.Step {
	check := func(ctx context.Context, h *steps.Host) (string, error) {
		if bad, err := notReady(ctx, nodes, h); bad != "" || err != nil {
			return bad, err
		}
		return noDNS(ctx, away, h)
	}
	return waitFor("kubernetes.wait-ready", check, "run kubectl get nodes,pods -A -o wide on %s, and kubectl describe for each object that is not Ready")
}

// waitFor waits until check returns "". advice has a verb for the name of the host.
func waitFor(name string, check func(context.Context, *steps.Host) (string, error), advice string) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, ReadOnly: true, Timeout: kubectl.DefaultTimeout + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			bad, err := check(ctx, h)
			return err == nil && bad == "", err
		},
		Act: func(ctx context.Context, h *steps.Host) error { return kubectl.Until(ctx, h, check, advice) },
	}
}

// notReady describes what is not ready yet; "" if everything is.
func notReady(ctx context.Context, nodes []manifest.Host, h *steps.Host) (string, error) {
	for _, want := range nodes {
		n, err := getNode(ctx, h, want.Name)
		var cmd *runner.CmdError
		if errors.As(err, &cmd) {
			return fmt.Sprintf("node %s cannot be read: %s", want.Name, cmd.Stderr), nil
		}
		if err != nil {
			return "", err
		}
		if ok, why := n.ready(); !ok {
			return fmt.Sprintf("node %s is not Ready: %s", want.Name, why), nil
		}
	}
	return "", nil
}

// noDNS reports why CoreDNS does not answer.
func noDNS(ctx context.Context, away []string, h *steps.Host) (string, error) {
	bad, err := kubectl.Unready(ctx, h, op.Workload{Kind: "Deployment", Namespace: "kube-system", Name: "coredns"})
	if bad == "" || err != nil || len(away) == 0 {
		return bad, err
	}
	pods, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "--no-headers",
		"-o", `custom-columns=NODE:.spec.nodeName,READY:.status.conditions[?(@.type=="Ready")].status`)
	if runner.Refused(err) {
		return bad, nil
	}
	if err != nil {
		return "", err
	}
	answers := false
	for line := range strings.Lines(pods) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && slices.Contains(away, f[0]):
		case len(f) == 2 && f[1] == "True":
			answers = true
		default:
			return bad, nil
		}
	}
	if !answers {
		return bad, nil
	}
	return "", nil
}

// parallelDrains is how many workers Drain drains at the same time. Each is a kubectl on one master.
const parallelDrains = 8

// Drain evicts the pods from the workers of a cluster before its deletion. Pods that do not
// terminate within 30 s are deleted together with the node.
func Drain(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.drain-nodes", Timeout: 5 * time.Minute, Risk: steps.Disruptive},
		Act: func(ctx context.Context, h *steps.Host) error {
			if ok, err := controlplane.Running(ctx, h); !ok || err != nil {
				return err // no API server that could evict pods
			}
			g, gctx := errgroup.WithContext(ctx)
			g.SetLimit(parallelDrains)
			for _, w := range nodes(c) {
				if c.Spec.RoleGroups.Has(manifest.RoleMaster, w.Name) {
					continue
				}
				g.Go(func() error {
					_, err := h.Run(gctx, runner.Cmd{OK: []int{1}, Argv: op.Kubectl(kubectl.AdminConf,
						"drain", w.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=30s")})
					return err
				})
			}
			return g.Wait()
		},
	}
}
