package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Client asks the members of a store by etcdctl, which runs on a host: the host's own
// program where members are services, and that of a member's container where kubeadm runs
// them. A store of the site's has its own client, for masters have no etcdctl then: see
// CheckExternal.
type Client struct {
	endpoints []string // the first that answers is asked
	flags     []string
	limit     time.Duration // of one command; 0 is the runner's

	in func(context.Context, *steps.Host) ([]string, error) // what etcdctl is run by; nil runs the host's own
}

// InContainer asks the member that kubeadm runs on a master, with the keys in a folder.
// The container runtime is asked for it and not the API server: that would go through the
// kubelet, which has no certificate to serve with before the cluster is complete.
func InContainer(keys string) Client {
	return Client{
		endpoints: []string{clientURL("localhost")},
		flags:     append([]string{answersWithin(answerTime)}, keyFlags(keys+"/ca.crt", keys+"/healthcheck-client.crt", keys+"/healthcheck-client.key")...),
		in: func(ctx context.Context, h *steps.Host) ([]string, error) {
			found, err := h.Exec(ctx, "crictl", "ps", "--quiet", "--state", "Running", "--name", "^etcd$", "--label", "io.kubernetes.pod.namespace=kube-system")
			if err != nil {
				return nil, err
			}
			ids := strings.Fields(string(found))
			if len(ids) == 0 {
				return nil, steps.Advise(errors.New("no container of etcd runs"), "see `crictl ps -a --name etcd` and `journalctl -u kubelet` on %s", h.Name)
			}
			return []string{"crictl", "exec", "--sync", "--timeout", "30", ids[0]}, nil
		},
	}
}

// answerTime is how long a member has for an answer, where nobody waits for it.
const answerTime = 10 * time.Second

// ofService asks members that are services, from the host of one. Each has some time for
// an answer, and etcdctl may connect more than once.
func ofService(within time.Duration, endpoints ...string) Client {
	return Client{endpoints: endpoints, flags: append(keyFlags(caFile, healthCert, healthKey), answersWithin(within)), limit: 2*within + 10*time.Second}
}

func answersWithin(d time.Duration) string { return "--command-timeout=" + d.String() }

func keyFlags(ca, cert, key string) []string {
	return []string{"--cacert=" + ca, "--cert=" + cert, "--key=" + key}
}

// argv is etcdctl with what it needs, for one of the endpoints.
func (c Client) argv(at string, words ...string) []string {
	return slices.Concat([]string{"etcdctl", "--endpoints=" + at}, c.flags, words)
}

// Argv is what a person types for the same, beside the host's way to etcdctl.
func (c Client) Argv(words ...string) []string { return c.argv(c.endpoints[0], words...) }

// Run runs etcdctl, and gives its output.
func (c Client) Run(ctx context.Context, h *steps.Host, words ...string) (out []byte, err error) {
	var by []string
	if c.in != nil {
		if by, err = c.in(ctx, h); err != nil {
			return nil, err
		}
	}
	for _, at := range c.endpoints {
		var res connector.Result
		res, err = h.Run(ctx, runner.Cmd{Timeout: c.limit, Argv: slices.Concat(by, c.argv(at, words...))})
		if err == nil || !runner.Refused(err) {
			return res.Stdout, err
		}
	}
	return nil, err
}

// Member is one of a store's, as etcdctl lists it.
type Member struct {
	ID         uint64   `json:"ID"`
	Name       string   `json:"name"` // empty until one that was added has started
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"` // none until it has started
}

// Members lists the members.
func (c Client) Members(ctx context.Context, h *steps.Host) ([]Member, error) {
	out, err := c.Run(ctx, h, "member", "list", "--write-out=json")
	if err != nil {
		return nil, err
	}
	return parseMembers(out)
}

func parseMembers(text []byte) ([]Member, error) {
	var list struct {
		Members []Member `json:"members"`
	}
	// What follows is what etcdctl said on standard error: crictl prints both.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
		return nil, fmt.Errorf("etcdctl member list: %w", err)
	}
	if len(list.Members) == 0 {
		return nil, errors.New("etcdctl member list names nobody")
	}
	return list.Members, nil
}

// Remove removes a member.
func (c Client) Remove(ctx context.Context, h *steps.Host, m Member) error {
	_, err := c.Run(ctx, h, "member", "remove", m.id())
	return err
}

// id is the member's number as etcdctl takes it.
func (m Member) id() string { return strconv.FormatUint(m.ID, 16) }

// PeerURL is where the other members reach the one on a host.
func PeerURL(c *manifest.Cluster, h manifest.Host) string { return peerURL(address(c, h)) }
