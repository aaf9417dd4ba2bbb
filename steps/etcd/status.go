package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// StackedKeys is the folder of a master with the keys of the member that kubeadm runs.
const StackedKeys = "/etc/kubernetes/pki/etcd"

// pollAnswerTime is the timeout of a request to a member that is polled.
const pollAnswerTime = 5 * time.Second

// memberOn returns a client of the member on a host.
func memberOn(c *manifest.Cluster, h *steps.Host) Client {
	if part.StoreOf(c).Kind == part.Stacked {
		return InContainer(StackedKeys)
	}
	return ofService(pollAnswerTime, clientURL(address(c, h.Host)))
}

// Status is what a member reports about itself and the etcd cluster.
type Status struct {
	Endpoint string `json:"Endpoint"`
	Status   struct {
		Header struct {
			Member uint64 `json:"member_id"`
		} `json:"header"`
		Version   string   `json:"version"`
		Leader    uint64   `json:"leader"`
		IsLearner bool     `json:"isLearner"`
		Errors    []string `json:"errors"`           // alarms, and that there is no leader
		Size      int64    `json:"dbSize"`           // bytes
		InUse     int64    `json:"dbSizeInUse"`      // bytes
		Index     uint64   `json:"raftIndex"`        // last entry of the log
		Applied   uint64   `json:"raftAppliedIndex"` // last applied entry of the log
	} `json:"Status"`
}

// Statuses queries every member.
func (c Client) Statuses(ctx context.Context, h *steps.Host) ([]Status, error) {
	out, err := c.Run(ctx, h, "endpoint", "status", "--cluster", "--write-out=json")
	if err != nil {
		return nil, err
	}
	return parseStatuses(out)
}

// answering queries every member, and returns those that answer. If one does not, each is asked by
// itself: crictl drops the standard output of a command that fails (ExecSync in pkg/remote of
// cri-client), where etcdctl prints the others.
func (c Client) answering(ctx context.Context, h *steps.Host) ([]Status, error) {
	all, err := c.Statuses(ctx, h)
	if err == nil || !runner.Refused(err) {
		return all, err
	}
	members, err := c.Members(ctx, h)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if len(m.ClientURLs) == 0 {
			continue
		}
		out, err := c.at(m).Run(ctx, h, "endpoint", "status", "--write-out=json")
		switch {
		case runner.Refused(err):
			continue
		case err != nil:
			return nil, err
		}
		one, err := parseStatuses(out)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// serves reports whether a member answers a linearizable read.
func (c Client) serves(ctx context.Context, h *steps.Host, m Member) (bool, error) {
	_, err := c.at(m).Run(ctx, h, "endpoint", "health")
	if runner.Refused(err) {
		return false, nil
	}
	return err == nil, err
}

// at returns the client for one member, which has started.
func (c Client) at(m Member) Client {
	c.endpoints = m.ClientURLs
	return c
}

func parseStatuses(text []byte) ([]Status, error) {
	var all []Status
	// Text after the array is etcdctl's standard error: crictl prints both.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&all); err != nil {
		return nil, fmt.Errorf("etcdctl endpoint status: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("etcdctl endpoint status returned no members")
	}
	return all, nil
}

// StopBlockers returns all reasons why no etcd member may be stopped: a member that is missing,
// is a learner or does not answer a linearizable read, and alarms. h is the host of a
// member.
func StopBlockers(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	return blockers(ctx, c, h, func(string) bool { return false })
}

// DefragmentBlockers returns the same without alarms about a full database: defragmenting may
// resolve those.
func DefragmentBlockers(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]string, error) {
	return blockers(ctx, c, h, func(alarm string) bool { return strings.Contains(alarm, noSpace) })
}

func blockers(ctx context.Context, c *manifest.Cluster, h *steps.Host, ignores func(alarm string) bool) ([]string, error) {
	client := memberOn(c, h)
	all, silent, err := listed(ctx, client, h)
	if err != nil || len(silent) > 0 {
		return silent, err
	}
	var cmd *runner.CmdError
	missing := absent(c, all)
	_, err = client.Run(ctx, h, "endpoint", "health", "--cluster")
	switch {
	case errors.As(err, &cmd):
		if bad := unhealthy(c, cmd); len(bad) > 0 {
			return append(missing, bad...), nil
		}
	case err != nil:
		return nil, err
	}
	statuses, err := client.Statuses(ctx, h)
	switch {
	case errors.As(err, &cmd):
		return append(missing, "a member does not report its status: "+lastLine(cmd)), nil
	case err != nil:
		return nil, err
	}
	for _, s := range statuses {
		for _, e := range s.Status.Errors {
			if e = "etcd reports: " + e; !slices.Contains(missing, e) && !ignores(e) {
				missing = append(missing, e)
			}
		}
	}
	return missing, nil
}

// listed returns the members, as the one on h lists them. silent is the reason why it does not, if it
// does not answer.
func listed(ctx context.Context, client Client, h *steps.Host) (all []Member, silent []string, err error) {
	all, err = client.Members(ctx, h)
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		return nil, []string{"the member on " + h.Name + " does not answer: " + lastLine(cmd)}, nil
	case errors.Is(err, errNoContainer):
		return nil, []string{"the member on " + h.Name + " does not answer: " + errNoContainer.Error()}, nil
	}
	return all, nil, err
}

// absent reports the members of the config that etcd does not have, and those that have not
// started or are learners.
func absent(c *manifest.Cluster, all []Member) []string {
	var out []string
	for _, want := range part.StoreOf(c).Members {
		if !slices.ContainsFunc(all, func(m Member) bool { return slices.Contains(m.PeerURLs, PeerURL(c, want)) }) {
			out = append(out, "etcd has no member "+want.Name)
		}
	}
	for _, m := range all {
		switch name := nameOf(c, m); {
		case len(m.ClientURLs) == 0:
			out = append(out, "member "+name+" has not started")
		case m.IsLearner:
			out = append(out, "member "+name+" is a learner")
		}
	}
	return out
}

// nameOf returns the host of a member, or its name and URLs in etcd if no host matches.
func nameOf(c *manifest.Cluster, m Member) string {
	for _, h := range part.StoreOf(c).Members {
		if slices.Contains(m.PeerURLs, PeerURL(c, h)) {
			return h.Name
		}
	}
	return strings.Join(append([]string{m.Name}, m.PeerURLs...), " ")
}

// unhealthy parses etcdctl's error lines for unhealthy endpoints. It skips members that are
// unhealthy only because of an alarm: each member reports all alarms in its status.
func unhealthy(c *manifest.Cluster, cmd *runner.CmdError) []string {
	var out []string
	alarms := 0
	for line := range strings.Lines(cmd.Stdout + "\n" + cmd.Stderr) {
		at, why, found := strings.Cut(strings.TrimSpace(line), " is unhealthy: ")
		if !found {
			continue
		}
		if strings.Contains(why, "Active Alarm(s)") {
			alarms++
			continue
		}
		for _, h := range part.StoreOf(c).Members {
			if at == clientURL(address(c, h)) {
				at = h.Name
			}
		}
		out = append(out, "member "+at+" is not healthy: "+why)
	}
	if len(out) == 0 && alarms == 0 {
		out = append(out, "not every member is healthy: "+lastLine(cmd))
	}
	return out
}

// lastLine returns the last line of a command's standard error, or its exit status.
func lastLine(cmd *runner.CmdError) string {
	text := strings.TrimSpace(cmd.Stderr)
	if text == "" {
		return fmt.Sprintf("exit status %d", cmd.Exit)
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}
