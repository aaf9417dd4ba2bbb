package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Data carries from the checks, for each host of a member, whether it has data. Who
// has none while others do has lost it: it would begin a store of its own.
var Data = steps.NewKey[bool]("etcd.data")

// joinFile has a member that is started for the first time join the store of the
// others. The unit reads it; to one that has data it means nothing.
const (
	joinFile = configDir + "/join.env"
	joinText = "ETCD_INITIAL_CLUSTER_STATE=existing\n"
)

// joining is that file, where it is left of a run that was cut off.
type joining struct{ cluster *manifest.Cluster }

func (joining) String() string { return "file " + joinFile }

// Needs gives none.
func (joining) Needs() []manifest.Need { return nil }

// Want removes it from a member that answers: the file comes where one is replaced, and
// means nothing once it has data. One that ended before would begin a store of its own
// without it.
func (j joining) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	if there, err := h.Exists(ctx, joinFile); err != nil || !there {
		return nil, err
	}
	return &op.Change{What: "remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := answers(ctx, j.cluster, h); err != nil {
			return err
		}
		return h.Remove(ctx, joinFile)
	}}, nil
}

// Gone removes it.
func (joining) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	if ours, err := op.Recorded(ctx, h, unitFile(h.Cluster)); err != nil || !ours {
		return nil, err
	}
	if there, err := h.Exists(ctx, joinFile); err != nil || !there {
		return nil, err
	}
	return &op.Change{What: "remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error { return h.Remove(ctx, joinFile) }}, nil
}

// survivors are the endpoints of the other members that have data.
func survivors(c *manifest.Cluster, h *steps.Host) []string {
	var out []string
	for _, m := range part.StoreOf(c).Members {
		if m.Name == h.Name {
			continue
		}
		// Where nobody has looked, as in a test of this step alone, none is known of.
		if has, err := Data.On(m.Name).Get(h); err == nil && has {
			out = append(out, clientURL(address(c, m)))
		}
	}
	return out
}

// settles is how long etcd may refuse changes to its members: it makes none before
// all others have been connected for five seconds (HealthInterval and
// isConnectedFullySince in etcd's server), and one of them may just have started.
const settles = 30 * time.Second

// change has the store add or remove a member.
func change(ctx context.Context, h *steps.Host, others []string, words ...string) error {
	var final error
	err := steps.Until(ctx, settles, time.Second, func(ctx context.Context) error {
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

// replace makes a member that has lost its data one of the store again: the dead
// one is removed, a new one added in its place, which then fetches all from the
// others. Most of the members have to be healthy, or nothing is done.
func (m member) replace(ctx context.Context, h *steps.Host, others []string, start op.Fn) error {
	err := steps.Until(ctx, time.Minute, time.Second, func(ctx context.Context) error {
		_, err := ofService(answerTime, others...).Run(ctx, h, "endpoint", "health")
		return err
	})
	if err != nil {
		return steps.Advise(fmt.Errorf("this member has no data, others have, and most of them do not answer: %w", err),
			"start the others: systemctl start %s; where most have lost their data, restore all of them from a snapshot", unit)
	}
	vacant, err := m.vacate(ctx, h, others)
	if err != nil {
		return steps.Advise(err, "see `etcdctl member list` on another etcd host")
	}
	if vacant {
		url := peerURL(address(m.cluster, h.Host))
		h.Log.InfoContext(ctx, "add a member", "member", h.Name, "url", url)
		if err := change(ctx, h, others, "add", h.Name, "--peer-urls="+url); err != nil {
			return steps.Advise(err, "all other members have to run: see `etcdctl endpoint health --cluster` on another etcd host")
		}
	}
	if err := h.WriteFile(ctx, joinFile, []byte(joinText), runner.Attr{}); err != nil {
		return err
	}
	if err := start(ctx, h); err != nil {
		return err
	}
	if err := answers(ctx, m.cluster, h); err != nil {
		return err
	}
	return h.Remove(ctx, joinFile)
}

// vacate removes the dead member in the place of h. It tells whether one is to be
// added: one that was added and never started is used as it is.
func (m member) vacate(ctx context.Context, h *steps.Host, others []string) (bool, error) {
	all, err := ofService(answerTime, others...).Members(ctx, h)
	if err != nil {
		return false, err
	}
	url := peerURL(address(m.cluster, h.Host))
	for _, x := range all {
		if !slices.Contains(x.PeerURLs, url) {
			continue
		}
		if x.Name == "" && len(x.ClientURLs) == 0 {
			return false, nil
		}
		h.Log.InfoContext(ctx, "remove a member that has lost its data", "member", x.Name, "url", url)
		if err := change(ctx, h, others, "remove", x.id()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// walDir is where a member has its log, which is what tells that it has data.
func walDir(c *manifest.Cluster) string {
	for _, a := range c.Spec.Etcd.ExtraArgs {
		if a.Name == "wal-dir" {
			return a.Value
		}
	}
	return path.Join(c.Spec.Etcd.DataDir, "member", "wal")
}

// clear empties the folder of a member without a log: what an etcd that could not
// begin leaves there.
func (m member) clear(ctx context.Context, h *steps.Host) error {
	return h.RemoveAll(ctx, path.Join(m.cluster.Spec.Etcd.DataDir, "member"))
}

func isLog(name string) bool { return strings.HasSuffix(name, ".wal") }
