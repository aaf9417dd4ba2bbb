package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// RenewProxy restarts kube-proxy on a master that has joined, so that it connects to the
// same API server as the host. A pod in the host's network has a copy of /etc/hosts from
// its start: while the node joined, it listed the first master.
func RenewProxy(c *manifest.Cluster) steps.Step {
	name := part.EndpointOf(c).Domain
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.renew-kube-proxy", Timeout: 3 * time.Minute, Risk: steps.Disruptive,
			Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			stale, err := staleProxies(ctx, h, name)
			if runner.Refused(err) { // the API server does not run yet
				return false, nil
			}
			return err == nil && len(stale) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			stale, err := staleProxies(ctx, h, name)
			if err != nil || len(stale) == 0 {
				return err
			}
			_, err = kubectl.Run(ctx, h, append([]string{"-n", "kube-system", "delete", "pod", "--ignore-not-found", "--grace-period=10"}, stale...)...)
			return err
		},
	}
}

// RenewWorkerProxy restarts kube-proxy on a worker whose endpoint has changed, so that it
// connects to the same load balancer as the host. The kubelet writes the pod's /etc/hosts
// when it starts the container (ensureHostsFile in pkg/kubelet/kubelet_pods.go of Kubernetes).
// A worker may delete no pods.
func RenewWorkerProxy(c *manifest.Cluster) steps.Step {
	name := part.EndpointOf(c).Domain
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.renew-worker-kube-proxy", Timeout: proxyTimeout + time.Minute, Risk: steps.Disruptive},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			stale, err := staleSandboxes(ctx, h, name)
			if runner.Refused(err) { // the container runtime does not run yet
				return false, nil
			}
			return err == nil && len(stale) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			stale, err := staleSandboxes(ctx, h, name)
			if err != nil {
				return err
			}
			for _, sandbox := range stale {
				out, err := h.Exec(ctx, "crictl", "ps", "--quiet", "--state", "Running", "--pod", sandbox, "--name", "^kube-proxy$")
				if err != nil {
					return err
				}
				for id := range strings.FieldsSeq(string(out)) {
					if _, err := h.Exec(ctx, "crictl", "stop", "--timeout", "10", id); err != nil {
						return err
					}
				}
			}
			err = steps.Until(ctx, proxyTimeout, time.Second, func(ctx context.Context) error {
				stale, err := staleSandboxes(ctx, h, name)
				switch {
				case err != nil && ctx.Err() == nil && !runner.Refused(err):
					return steps.Permanent(err)
				case err == nil && len(stale) > 0:
					return errors.New("kube-proxy has not started again")
				}
				return err
			})
			return steps.Advise(err, "run crictl ps -a --name kube-proxy and journalctl -u kubelet on %s", h.Name)
		},
	}
}

// proxyTimeout is how long the kubelet may take to start kube-proxy again.
const proxyTimeout = 3 * time.Minute

// staleSandboxes returns the sandboxes of kube-proxy on h in which name has other addresses
// than on h, as the container runtime has them.
func staleSandboxes(ctx context.Context, h *steps.Host, name string) ([]string, error) {
	own, err := h.ReadFile(ctx, "/etc/hosts")
	if err != nil {
		return nil, err
	}
	out, err := h.Exec(ctx, "crictl", "pods", "--state", "Ready", "--namespace", "^kube-system$", "--label", "k8s-app=kube-proxy", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			ID       string `json:"id"`
			Metadata struct {
				UID string `json:"uid"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("crictl pods: %w", err)
	}
	var stale []string
	for _, p := range list.Items {
		differs, err := hostsDiffer(ctx, h, own, name, p.Metadata.UID)
		if err != nil {
			return nil, err
		}
		if differs {
			stale = append(stale, p.ID)
		}
	}
	return stale, nil
}

// hostsDiffer reports whether name has other addresses in the pod with that UID than in own.
// A pod without the file has not started.
func hostsDiffer(ctx context.Context, h *steps.Host, own []byte, name, uid string) (bool, error) {
	theirs, err := h.ReadFile(ctx, path.Join("/var/lib/kubelet/pods", uid, "etc-hosts"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !slices.Equal(meaning(own, name), meaning(theirs, name)), err
}

// staleProxies returns the kube-proxy pods on h in which name has other addresses than
// on h.
func staleProxies(ctx context.Context, h *steps.Host, name string) ([]string, error) {
	own, err := h.ReadFile(ctx, "/etc/hosts")
	if err != nil {
		return nil, err
	}
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy",
		"--field-selector", "spec.nodeName="+h.Name, "-o", "jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}")
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, word := range strings.Fields(out) {
		pod, uid, _ := strings.Cut(word, "=")
		differs, err := hostsDiffer(ctx, h, own, name, uid)
		if err != nil {
			return nil, err
		}
		if differs {
			stale = append(stale, pod)
		}
	}
	return stale, nil
}

// meaning returns the addresses of a name in a hosts file.
func meaning(hosts []byte, name string) []string {
	var out []string
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], name) {
			out = append(out, words[0])
		}
	}
	return out
}
