package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Client runs etcdctl on a host to query and change an etcd cluster: the host's own etcdctl
// if members are services, and the one in a member's container if kubeadm runs them. An
// external etcd has another client, because masters have no etcdctl then: see
// CheckExternal.
type Client struct {
	endpoints []string // tried in order, until one answers
	flags     []string
	limit     time.Duration // of one command; 0 is the runner's

	// in returns the container in which etcdctl runs; nil runs the host's own.
	in func(context.Context, *steps.Host) (string, error)
}

// execTime is the timeout of one command in a container.
const execTime = 30 * time.Second

// InContainer returns a Client of the member that kubeadm runs on a master, with the keys
// in the folder keys. It finds the container through the container runtime and not through
// the API server: that would need the kubelet's serving certificate, which does not exist
// before the cluster is complete.
func InContainer(keys string) Client {
	return Client{
		endpoints: []string{clientURL("localhost")},
		flags:     append([]string{answersWithin(answerTime)}, keyFlags(keys+"/ca.crt", keys+"/healthcheck-client.crt", keys+"/healthcheck-client.key")...),
		in: func(ctx context.Context, h *steps.Host) (string, error) {
			found, err := h.Exec(ctx, "crictl", "ps", "--quiet", "--state", "Running", "--name", "^etcd$", "--label", "io.kubernetes.pod.namespace=kube-system")
			if err != nil {
				return "", err
			}
			ids := strings.Fields(string(found))
			if len(ids) == 0 {
				return "", steps.Advise(errNoContainer, "run crictl ps -a --name etcd and journalctl -u kubelet on %s", h.Name)
			}
			return ids[0], nil
		},
	}
}

var errNoContainer = errors.New("no container of etcd runs")

// answerTime is the timeout of a request to a member, outside of polling.
const answerTime = 10 * time.Second

// ofService returns a Client of members that are services, run on the host of one. within
// is the timeout of one request; etcdctl may connect more than once.
func ofService(within time.Duration, endpoints ...string) Client {
	return Client{endpoints: endpoints, flags: append(keyFlags(caFile, healthCert, healthKey), answersWithin(within)), limit: 2*within + 10*time.Second}
}

// within returns the client with another timeout of requests.
func (c Client) within(d time.Duration) Client {
	c.flags = slices.DeleteFunc(slices.Clone(c.flags), func(f string) bool { return strings.HasPrefix(f, commandTimeout) })
	c.flags, c.limit = append(c.flags, answersWithin(d)), d+execTime
	return c
}

const commandTimeout = "--command-timeout="

func answersWithin(d time.Duration) string { return commandTimeout + d.String() }

func keyFlags(ca, cert, key string) []string {
	return []string{"--cacert=" + ca, "--cert=" + cert, "--key=" + key}
}

// argv returns the etcdctl command with its flags for one of the endpoints.
func (c Client) argv(at string, words ...string) []string {
	return slices.Concat([]string{"etcdctl", "--endpoints=" + at}, c.flags, words)
}

// Argv returns the etcdctl command that a person can type, without the command that enters
// a container.
func (c Client) Argv(words ...string) []string { return c.argv(c.endpoints[0], words...) }

// Run runs etcdctl on h and returns its standard output. An endpoint that fails is followed
// by the next one; the output and the error are those of the last.
func (c Client) Run(ctx context.Context, h *steps.Host, words ...string) (out []byte, err error) {
	var by []string
	if c.in != nil {
		id, err := c.in(ctx, h)
		if err != nil {
			return nil, err
		}
		by = []string{"crictl", "exec", "--sync", "--timeout", strconv.Itoa(int(max(execTime, c.limit).Seconds())), id}
	}
	for _, at := range c.endpoints {
		var res connector.Result
		res, err = h.Run(ctx, runner.Cmd{Timeout: c.limit, Argv: slices.Concat(by, c.argv(at, words...))})
		out = res.Stdout
		if err == nil || !runner.Refused(err) {
			break
		}
	}
	var cmd *runner.CmdError
	if c.in != nil && errors.As(err, &cmd) {
		cmd.Stderr = inner(cmd.Stderr)
	}
	return out, err
}

// exited is how crictl begins its message about a command that has failed in a container.
var exited = regexp.MustCompile(` exited with \d+: `)

// inner returns the standard error of a command that has failed in a container, out of the line that
// crictl logs about it; other text is returned as it is.
func inner(text string) string {
	_, rest, found := strings.Cut(text, " msg=")
	if !found {
		return text
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return text
	}
	message, err := strconv.Unquote(quoted)
	if err != nil {
		return text
	}
	at := exited.FindStringIndex(message)
	if at == nil {
		return text
	}
	return message[at[1]:]
}

// Member is an etcd member, as etcdctl member list prints it.
type Member struct {
	ID         uint64   `json:"ID"`
	Name       string   `json:"name"` // empty until an added member has started
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"` // none until it has started
	IsLearner  bool     `json:"isLearner"`
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
	// Text after the object is etcdctl's standard error: crictl prints both.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
		return nil, fmt.Errorf("etcdctl member list: %w", err)
	}
	if len(list.Members) == 0 {
		return nil, errors.New("etcdctl member list returned no members")
	}
	return list.Members, nil
}

// Remove removes a member from the etcd cluster.
func (c Client) Remove(ctx context.Context, h *steps.Host, m Member) error {
	_, err := c.Run(ctx, h, "member", "remove", m.id())
	return err
}

// id returns the member's ID in etcdctl's notation.
func (m Member) id() string { return strconv.FormatUint(m.ID, 16) }

// PeerURL returns the URL at which other members reach the one on h.
func PeerURL(c *manifest.Cluster, h manifest.Host) string { return peerURL(address(c, h)) }
