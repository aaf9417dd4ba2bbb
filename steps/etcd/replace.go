package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Data reports, for each host of a member, whether it has data, as found by the checks. A
// member without data while others have some has lost it, and would bootstrap a separate
// etcd.
var Data = steps.NewKey[bool]("etcd.data")

// joinFile lets a member without data join the existing etcd at its first start. The unit
// reads it; a member with data ignores it.
const (
	joinFile = configDir + "/join.env"
	joinText = "ETCD_INITIAL_CLUSTER_STATE=existing\n"
)

// survivors returns the endpoints of the other members that have data.
func survivors(c *manifest.Cluster, h *steps.Host) []string {
	var out []string
	for _, m := range part.StoreOf(c).Members {
		if m.Name == h.Name {
			continue
		}
		// Without the check, as in a test of only this step, none is known.
		if has, err := Data.On(m.Name).Get(h); err == nil && has {
			out = append(out, clientURL(address(c, m)))
		}
	}
	return out
}

// changeTimeout is how long etcd may reject changes of its members: it makes none before all
// others have been connected for five seconds (HealthInterval and isConnectedFullySince in
// etcd's server), and one of them may just have started.
const changeTimeout = 30 * time.Second

// change adds or removes a member.
func change(ctx context.Context, h *steps.Host, others []string, words ...string) error {
	var final error
	err := steps.Until(ctx, changeTimeout, time.Second, func(ctx context.Context) error {
		_, err := ofService(answerTime, others...).Run(ctx, h, append([]string{"member"}, words...)...)
		var refused *runner.CmdError
		if errors.As(err, &refused) && strings.Contains(refused.Stderr, "etcdserver: unhealthy cluster") {
			return err
		}
		final = err
		return nil
	})
	return cmp.Or(err, final)
}

// replace replaces a member that has lost its data: the former member is removed and a new
// one added, which then gets all data from the others. Without a quorum it changes nothing.
func (m member) replace(ctx context.Context, h *steps.Host, others []string, start op.Fn) error {
	err := steps.Until(ctx, time.Minute, time.Second, func(ctx context.Context) error {
		_, err := ofService(answerTime, others...).Run(ctx, h, "endpoint", "health")
		return err
	})
	if err != nil {
		return steps.Advise(fmt.Errorf("this host has no data of etcd, and the members that have some have no quorum: %w", err),
			"start the others with systemctl start %s; if most members have lost their data, restore all of them from a snapshot", unit)
	}
	vacant, err := m.vacate(ctx, h, others)
	if err == nil && vacant {
		err = m.vacateLost(ctx, h, others)
	}
	if err != nil {
		return steps.Advise(err, "run etcdctl member list on another etcd host")
	}
	if vacant {
		url := peerURL(address(m.cluster, h.Host))
		h.Log.InfoContext(ctx, "add a member as a learner", "member", h.Name, "url", url)
		if err := change(ctx, h, others, "add", h.Name, "--learner", "--peer-urls="+url); err != nil {
			return steps.Advise(err, "all other members must run, and none may be a learner: check with kubexm etcd status -f CONFIG")
		}
	}
	if err := m.listMembers(ctx, h, others); err != nil {
		return err
	}
	if err := h.WriteFile(ctx, joinFile, []byte(joinText), runner.Attr{}); err != nil {
		return err
	}
	if err := start(ctx, h); err != nil {
		return err
	}
	return m.finishJoin(ctx, h, others)
}

// vacate removes the former member of h. It reports whether a new member must be added: one
// that was added and never started is used.
func (m member) vacate(ctx context.Context, h *steps.Host, others []string) (bool, error) {
	all, err := ofService(answerTime, others...).Members(ctx, h)
	if err != nil {
		return false, err
	}
	for _, x := range all {
		if !slices.Contains(x.PeerURLs, PeerURL(m.cluster, h.Host)) {
			continue
		}
		if x.Name == "" && len(x.ClientURLs) == 0 {
			return false, nil
		}
		h.Log.InfoContext(ctx, "remove a member that has lost its data", "member", x.Name, "url", PeerURL(m.cluster, h.Host))
		if err := change(ctx, h, others, "remove", x.id()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// vacateLost removes all other members whose hosts have lost their data. etcd adds no member
// while another one does not answer, and those will not: each host adds its own again.
func (m member) vacateLost(ctx context.Context, h *steps.Host, others []string) error {
	all, err := ofService(answerTime, others...).Members(ctx, h)
	if err != nil {
		return err
	}
	for _, host := range othersOf(m.cluster, h) {
		if has, err := Data.On(host.Name).Get(h); err != nil || has {
			continue
		}
		i := slices.IndexFunc(all, func(x Member) bool { return slices.Contains(x.PeerURLs, PeerURL(m.cluster, host)) })
		if i < 0 || ofService(pollAnswerTime, clientURL(address(m.cluster, host))).answers(ctx, h) {
			continue // it has joined since
		}
		h.Log.InfoContext(ctx, "remove a member that has lost its data", "member", host.Name)
		if err := change(ctx, h, others, "remove", all[i].id()); err != nil {
			return err
		}
	}
	return nil
}

// answers reports whether a member reports its status; a learner does so, too.
func (c Client) answers(ctx context.Context, h *steps.Host) bool {
	_, err := c.Run(ctx, h, "endpoint", "status")
	return err == nil
}

// walDir returns the folder of a member's write-ahead log, by which hasData decides.
func walDir(c *manifest.Cluster) string {
	for _, a := range c.Spec.Etcd.ExtraArgs {
		if a.Name == "wal-dir" {
			return a.Value
		}
	}
	return path.Join(c.Spec.Etcd.DataDir, "member", "wal")
}

// clear deletes a member's data, or what an etcd that could not start has left of it.
func (m member) clear(ctx context.Context, h *steps.Host) error {
	if err := h.RemoveAll(ctx, path.Join(m.cluster.Spec.Etcd.DataDir, "member")); err != nil {
		return err
	}
	all, err := h.List(ctx, walDir(m.cluster)) // a folder of its own if extraArgs sets wal-dir
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, i := range all {
		if err == nil && isLog(i.Name) {
			err = h.Remove(ctx, path.Join(walDir(m.cluster), i.Name))
		}
	}
	return err
}

func isLog(name string) bool { return strings.HasSuffix(name, ".wal") }
