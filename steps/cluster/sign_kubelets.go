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

// SignKubelets has every kubelet serve with a certificate of the cluster's CA: it
// approves what kubelets ask for, where the names in it are the node's by the config,
// and waits until an API server reaches each of them. A renewal that waits is
// approved by the next run.
func SignKubelets(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.sign-kubelets", Timeout: kubectl.Patience + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			asked, err := pending(ctx, c, h)
			if runner.Refused(err) {
				return false, nil
			}
			if err != nil || slices.ContainsFunc(asked, func(q question) bool { return q.unfit(c) == nil }) {
				return false, err
			}
			silent, err := unreached(ctx, c, h)
			return err == nil && len(silent) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			return kubectl.Until(ctx, h, func(ctx context.Context, h *steps.Host) (string, error) { return sign(ctx, c, h) },
				"see `journalctl -u kubelet` there, `kubectl get csr` on %s, and whether port 10250 of nodes is open to masters")
		},
	}
}

// sign approves what waits, and says which kubelet is still not reached.
func sign(ctx context.Context, c *manifest.Cluster, h *steps.Host) (string, error) {
	asked, err := pending(ctx, c, h)
	if err != nil {
		return "", err
	}
	refused := map[string]error{} // by node
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, q := range asked {
		if err := q.unfit(c); err != nil {
			refused[q.node()] = err
			continue
		}
		g.Go(func() error { return q.approve(gctx, h) })
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	silent, err := unreached(ctx, c, h)
	if err != nil || len(silent) == 0 {
		return "", err
	}
	for _, s := range silent {
		if err := refused[s.node]; err != nil {
			return "", steps.Lost(err)
		}
	}
	return fmt.Sprintf("the API server does not reach the kubelet of %s: %s", silent[0].node, silent[0].why), nil
}

// unserved is a kubelet that no API server reaches.
type unserved struct{ node, why string }

// atOnce is how many kubectl run side by side on a master.
const atOnce = 8

// unreached asks every kubelet through the API server, which looks at its certificate.
func unreached(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]unserved, error) {
	all := nodes(c)
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
