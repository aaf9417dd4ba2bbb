package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// Soak waits until every node of the cluster has been Ready for the duration d without a
// break, so that a failure some minutes after a change is detected before the change reaches
// more hosts. It runs on a master.
func Soak(c *manifest.Cluster, d time.Duration) steps.Step {
	return wait{
		name:   "gate.soak",
		check:  func(ctx context.Context, h *steps.Host) ([]string, error) { return unready(ctx, c, h) },
		hold:   d,
		advice: "run kubectl get nodes on %s, and kubectl describe node for those that are not Ready",
	}.step()
}

func unready(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	rows, why, err := table(ctx, h, "get", "nodes", "-o", `custom-columns=NAME:.metadata.name,READY:.status.conditions[?(@.type=="Ready")].status`)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return []string{"the nodes: " + why}, nil
	}
	var missing []string
	for _, n := range part.Nodes.Hosts(c) {
		i := slices.IndexFunc(rows, func(r []string) bool { return r[0] == n.Name })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("node %s does not exist", n.Name))
		case len(rows[i]) != 2 || rows[i][1] != "True":
			missing = append(missing, fmt.Sprintf("node %s is not Ready", n.Name))
		}
	}
	return missing, nil
}
