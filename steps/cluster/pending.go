package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Limits for reading certificate signing requests. A node can create any number of them;
// the limits prevent it from blocking the requests of other nodes.
const (
	maxRequestNames = 32 << 20 // bytes of names
	maxRequests     = 64 << 20 // bytes of requestsAtOnce requests; etcd accepts 1.5 MiB for each
	requestsAtOnce  = 20
	newestOfNode    = 3 // a kubelet creates another request only if the last one was not answered
)

// waiting prints a line for each request without a condition: creation time, name, user.
const waiting = `go-template={{range .items}}{{if not (and .status .status.conditions)}}{{.metadata.creationTimestamp}} {{.metadata.name}} {{.spec.username}}{{"\n"}}{{end}}{{end}}`

// pending returns the newest unanswered requests of each of the config's nodes. The API
// server filters by signer, kubectl on the master by state.
func pending(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]signingRequest, error) {
	names, err := pendingNames(ctx, c, h)
	if err != nil {
		return nil, err
	}
	var requests []signingRequest
	for some := range slices.Chunk(names, requestsAtOnce) {
		qs, err := readRequests(ctx, h, some)
		if err != nil {
			return nil, err
		}
		requests = append(requests, qs...)
	}
	return requests, nil
}

func pendingNames(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	out, err := h.Run(ctx, runner.Cmd{Limit: maxRequestNames, Argv: op.Kubectl(kubectl.AdminConf, "--request-timeout=10s",
		"get", "certificatesigningrequests", "--field-selector=spec.signerName="+kubeletSigner, "-o", waiting)})
	if errors.Is(err, runner.ErrTruncated) {
		return nil, steps.Advise(fmt.Errorf("certificate signing requests: %w", err), "list them with kubectl get csr on %s, and delete the surplus requests of single nodes", h.Name)
	}
	if err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for _, x := range c.Spec.Hosts {
		nodes[nodeUser+x.Name] = true
	}
	lines := slices.Collect(strings.Lines(string(out.Stdout)))
	slices.Sort(lines) // by the time
	slices.Reverse(lines)
	var names []string
	of := map[string]int{}
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) != 3 || !nodes[words[2]] || strings.HasPrefix(words[1], "-") {
			continue
		}
		if of[words[2]]++; of[words[2]] <= newestOfNode {
			names = append(names, words[1])
		}
	}
	slices.Sort(names)
	return names, nil
}

// readRequests reads requests by name, without those that were deleted or answered meanwhile.
func readRequests(ctx context.Context, h *steps.Host, names []string) ([]signingRequest, error) {
	out, err := h.Run(ctx, runner.Cmd{Limit: maxRequests, Argv: op.Kubectl(kubectl.AdminConf, append([]string{"--request-timeout=10s",
		"get", "--ignore-not-found", "-o", "json", "certificatesigningrequests"}, names...)...)})
	if err != nil || len(strings.TrimSpace(string(out.Stdout))) == 0 {
		return nil, err
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(out.Stdout, &list); err != nil {
		return nil, fmt.Errorf("certificate signing requests: %w", err)
	}
	if len(names) == 1 && list.Items == nil { // kubectl prints one object without a list
		list.Items = []json.RawMessage{out.Stdout}
	}
	var requests []signingRequest
	for _, text := range list.Items {
		q, err := parseRequest(text)
		if err != nil {
			return nil, err
		}
		if q.Spec.SignerName == kubeletSigner && len(q.Status.Conditions) == 0 {
			requests = append(requests, q)
		}
	}
	return requests, nil
}
