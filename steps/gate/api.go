package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// API waits until the API server on its host is ready. It connects to that server directly,
// not through a load balancer.
func API(c *manifest.Cluster) steps.Step {
	return wait{
		name:   "gate.api-server",
		check:  func(ctx context.Context, h *steps.Host) ([]string, error) { return apiMissing(ctx, c, h) },
		advice: "run crictl ps -a --name kube-apiserver on %s, and crictl logs for its container",
	}.step()
}

func apiMissing(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	at := "https://" + net.JoinHostPort(c.NodeAddresses(h.Host)[0], strconv.Itoa(c.APIServerPort()))
	_, err := kubectl.Run(ctx, h, "--request-timeout=10s", "--server="+at, "get", "--raw=/readyz?verbose")
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		return []string{fmt.Sprintf("the API server of %s is not ready: %s", h.Name, notReady(cmd))}, nil
	case err != nil:
		return nil, err
	}
	return nil, nil
}

// notReady returns the failed checks of a response of /readyz, or its last line if there are
// none.
func notReady(cmd *runner.CmdError) string {
	var bad []string
	last := fmt.Sprintf("exit status %d", cmd.Exit)
	// kubectl quotes the response within one line.
	for line := range strings.Lines(strings.ReplaceAll(cmd.Stderr, `\n`, "\n")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		last = line
		if i := strings.Index(line, "[-]"); i >= 0 {
			bad = append(bad, line[i+len("[-]"):])
		}
	}
	if len(bad) > 0 {
		return strings.Join(bad, ", ")
	}
	return last
}
