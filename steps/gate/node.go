package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Node waits until a node is Ready, its kubelet answers through the API server, and the
// DaemonSet pods on the node are ready. The kubelet must have the version set, unless that is
// "". It runs on a master.
func Node(of manifest.Host, set string) steps.Step {
	return wait{
		name:   "gate.node",
		check:  func(ctx context.Context, h *steps.Host) ([]string, error) { return nodeMissing(ctx, h, of.Name, set) },
		advice: "run kubectl describe node " + of.Name + " on %s, and journalctl -u kubelet on " + of.Name,
	}.step()
}

// nodeColumns are the columns that are read of a node, podColumns those of its pods.
const (
	nodeColumns = `custom-columns=READY:.status.conditions[?(@.type=="Ready")].status,KUBELET:.status.nodeInfo.kubeletVersion`
	podColumns  = `custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,OWNER:.metadata.ownerReferences[*].kind,READY:.status.conditions[?(@.type=="Ready")].status`
)

func nodeMissing(ctx context.Context, h *steps.Host, node, set string) ([]string, error) {
	rows, why, err := table(ctx, h, "get", "node", node, "-o", nodeColumns)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return []string{"node " + node + ": " + why}, nil
	case len(rows) != 1 || len(rows[0]) != 2:
		return nil, fmt.Errorf("kubectl get node %s: unexpected output %q", node, rows)
	}
	var missing []string
	if ready := rows[0][0]; ready != "True" {
		missing = append(missing, "node "+node+" is not Ready")
	}
	if version := rows[0][1]; set != "" && version != set {
		missing = append(missing, fmt.Sprintf("the kubelet of %s is %s, not %s", node, version, set))
	}
	// A node stays Ready for a while after its kubelet has ended: query the kubelet.
	if _, why, err = query(ctx, h, "get", "--raw=/api/v1/nodes/"+node+"/proxy/healthz"); err != nil {
		return nil, err
	} else if why != "" {
		missing = append(missing, "the kubelet of "+node+" does not answer the API server: "+why)
	}
	pods, why, err := table(ctx, h, "get", "pods", "-A", "--field-selector=spec.nodeName="+node, "-o", podColumns)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return append(missing, "the pods of "+node+": "+why), nil
	}
	for _, p := range pods {
		if len(p) == 4 && p[2] == "DaemonSet" && p[3] != "True" {
			missing = append(missing, fmt.Sprintf("pod %s/%s on %s is not ready", p[0], p[1], node))
		}
	}
	return missing, nil
}

// maxTable limits the output of kubectl, in bytes: it suffices for ten thousand objects.
const maxTable = 8 << 20

// query runs kubectl. why is an error of the API server, which may pass.
func query(ctx context.Context, h *steps.Host, args ...string) (out, why string, err error) {
	res, err := h.Run(ctx, runner.Cmd{Limit: maxTable, Argv: op.Kubectl(kubectl.AdminConf, append([]string{"--request-timeout=10s"}, args...)...)})
	var cmd *runner.CmdError
	if errors.As(err, &cmd) {
		return "", notReady(cmd), nil
	}
	return string(res.Stdout), "", err
}

// table runs kubectl with custom columns, and returns the rows without the header.
func table(ctx context.Context, h *steps.Host, args ...string) (rows [][]string, why string, err error) {
	out, why, err := query(ctx, h, append(args, "--no-headers")...)
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "No resources") {
			rows = append(rows, words)
		}
	}
	return rows, why, err
}
