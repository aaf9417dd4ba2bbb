package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Node waits until a node is Ready by a report of its running kubelet, which answers through the API
// server, and the DaemonSet pods on the node are ready. The kubelet must have the version set, unless that is
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
	nodeColumns = `custom-columns=READY:.status.conditions[?(@.type=="Ready")].status,REPORTED:.status.conditions[?(@.type=="Ready")].lastHeartbeatTime,KUBELET:.status.nodeInfo.kubeletVersion`
	podColumns  = `custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,OWNER:.metadata.ownerReferences[*].kind,READY:.status.conditions[?(@.type=="Ready")].status`
)

func nodeMissing(ctx context.Context, h *steps.Host, node, set string) ([]string, error) {
	rows, why, err := table(ctx, h, "get", "node", node, "-o", nodeColumns)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return []string{"node " + node + ": " + why}, nil
	case len(rows) != 1 || len(rows[0]) != 3:
		return nil, fmt.Errorf("kubectl get node %s: unexpected output %q", node, rows)
	}
	var missing []string
	if ready := rows[0][0]; ready != "True" {
		missing = append(missing, "node "+node+" is not Ready")
	}
	if version := rows[0][2]; set != "" && version != set {
		missing = append(missing, fmt.Sprintf("the kubelet of %s is %s, not %s", node, version, set))
	}
	// A node stays Ready for a while after its kubelet has ended, and is not for a moment when a new
	// one makes its first report: query the kubelet.
	metrics, why, err := query(ctx, h, "get", "--raw=/api/v1/nodes/"+node+"/proxy/metrics")
	if err != nil {
		return nil, err
	}
	if why != "" {
		missing = append(missing, "the kubelet of "+node+" does not answer the API server: "+why)
	} else if reported, err := reportedSince(rows[0][1], metrics); err != nil {
		return nil, fmt.Errorf("kubelet of %s: %w", node, err)
	} else if !reported {
		missing = append(missing, "the kubelet of "+node+" has not reported since it started")
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

// startMetric is the metric with the time at which a kubelet's process started. It is read on the
// clock of the node, as the time of its reports is (prometheus/client_golang, process collector).
const startMetric = "process_start_time_seconds "

// reportedSince reports whether a kubelet has reported the status of its node since it started.
// Reports have whole seconds.
func reportedSince(report, metrics string) (bool, error) {
	at, err := time.Parse(time.RFC3339, report)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, startMetric); ok {
			start, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return at.Unix() >= int64(start), err
		}
	}
	return false, errors.New("its metrics have no " + strings.TrimSpace(startMetric))
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
