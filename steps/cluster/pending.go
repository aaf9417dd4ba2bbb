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

// The bounds of what is read of requests. A node can make as many as it likes; it
// keeps nobody from the others' then.
const (
	maxRequestNames = 32 << 20 // bytes of names
	maxRequests     = 64 << 20 // bytes of requestsAtOnce requests, of which the store takes 1.5 MiB each
	requestsAtOnce  = 20
	newestOfNode    = 3 // a kubelet asks again only when its last request came to nothing
)

// waiting prints a line for each request that has no condition: when it was made,
// its name, who made it.
const waiting = `go-template={{range .items}}{{if not (and .status .status.conditions)}}{{.metadata.creationTimestamp}} {{.metadata.name}} {{.spec.username}}{{"\n"}}{{end}}{{end}}`

// pending are the requests of the config's nodes that nobody has answered, the newest
// of each. The API server selects the signer, kubectl on the master the state.
func pending(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]question, error) {
	names, err := pendingNames(ctx, c, h)
	if err != nil {
		return nil, err
	}
	var asked []question
	for some := range slices.Chunk(names, requestsAtOnce) {
		qs, err := questions(ctx, h, some)
		if err != nil {
			return nil, err
		}
		asked = append(asked, qs...)
	}
	return asked, nil
}

func pendingNames(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	out, err := h.Run(ctx, runner.Cmd{Limit: maxRequestNames, Argv: op.Kubectl(kubectl.AdminConf, "--request-timeout=10s",
		"get", "certificatesigningrequests", "--field-selector=spec.signerName="+kubeletSigner, "-o", waiting)})
	if errors.Is(err, runner.ErrTruncated) {
		return nil, steps.Advise(fmt.Errorf("certificate signing requests: %w", err), "delete those that a single node keeps making: kubectl get csr on %s", h.Name)
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

// questions gives requests by their names, without those that are gone or answered by now.
func questions(ctx context.Context, h *steps.Host, names []string) ([]question, error) {
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
	var asked []question
	for _, text := range list.Items {
		q, err := ask(text)
		if err != nil {
			return nil, err
		}
		if q.Spec.SignerName == kubeletSigner && len(q.Status.Conditions) == 0 {
			asked = append(asked, q)
		}
	}
	return asked, nil
}
