package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// SignKubelets approves the serving certificates of the nodes' kubelets, which the
// cluster's CA signs. It approves a request only if its names and addresses are the
// node's in the config, and waits until the API server reaches each kubelet. The next run
// approves pending renewals.
func SignKubelets(c *manifest.Cluster, nodes []manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.sign-kubelets", Timeout: kubectl.DefaultTimeout + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			requests, err := pending(ctx, c, h)
			if runner.Refused(err) {
				return false, nil
			}
			if err != nil || slices.ContainsFunc(requests, func(q signingRequest) bool { return q.unfit(c) == nil }) {
				return false, err
			}
			silent, err := unreached(ctx, nodes, h)
			return err == nil && len(silent) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			return kubectl.Until(ctx, h, func(ctx context.Context, h *steps.Host) (string, error) { return sign(ctx, c, nodes, h) },
				"run kubectl get csr on %s and journalctl -u kubelet on the node, and check that masters reach port 10250 of nodes")
		},
	}
}

// sign approves pending requests, and describes a kubelet that the API server does not
// reach; "" if it reaches all.
func sign(ctx context.Context, c *manifest.Cluster, nodes []manifest.Host, h *steps.Host) (string, error) {
	requests, err := pending(ctx, c, h)
	if err != nil {
		return "", err
	}
	refused := map[string]error{} // by node
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, q := range requests {
		if err := q.unfit(c); err != nil {
			refused[q.node()] = err
			continue
		}
		g.Go(func() error { return q.approve(gctx, h) })
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	silent, err := unreached(ctx, nodes, h)
	if err != nil || len(silent) == 0 {
		return "", err
	}
	for _, s := range silent {
		if err := refused[s.node]; err != nil {
			return "", steps.Permanent(err)
		}
	}
	return fmt.Sprintf("the API server cannot reach the kubelet of %s: %s", silent[0].node, silent[0].why), nil
}

// unserved is a kubelet that the API server does not reach.
type unserved struct{ node, why string }

// atOnce is how many kubectl processes run in parallel on a master.
const atOnce = 8

// unreached queries the kubelets of nodes through the API server, which verifies their
// certificates.
func unreached(ctx context.Context, all []manifest.Host, h *steps.Host) ([]unserved, error) {
	found := make([]unserved, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, n := range all {
		g.Go(func() error {
			_, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/healthz")
			var cmd *runner.CmdError
			if errors.As(err, &cmd) {
				found[i] = unserved{n.Name, strings.TrimSpace(cmd.Stderr)}
				return nil
			}
			return err
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(found, func(u unserved) bool { return u.node == "" }), err
}
