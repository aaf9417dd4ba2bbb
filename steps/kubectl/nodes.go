package kubectl

import (
	"context"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// readiness has kubectl print each node as NAME=True, or =False or =Unknown.
const readiness = `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`

// NodesReady returns by name whether each node of the cluster is Ready, with one request.
func NodesReady(ctx context.Context, h *steps.Host) (map[string]bool, error) {
	out, err := Run(ctx, h, "--request-timeout=10s", "get", "nodes", "-o", readiness)
	if err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for word := range strings.FieldsSeq(out) {
		name, state, _ := strings.Cut(word, "=")
		ready[name] = state == "True"
	}
	return ready, nil
}
