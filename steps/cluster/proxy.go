package cluster

import (
	"context"
	"errors"
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
		theirs, err := h.ReadFile(ctx, path.Join("/var/lib/kubelet/pods", uid, "etc-hosts"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has not started
		}
		if err != nil {
			return nil, err
		}
		if !slices.Equal(meaning(own, name), meaning(theirs, name)) {
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
