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

// joining is that file if an interrupted run has left it.
type joining struct{ cluster *manifest.Cluster }

func (joining) String() string { return "file " + joinFile }

// Needs returns nil.
func (joining) Needs() []manifest.Need { return nil }

// Want removes the file once the member answers. The replacement of a member creates it, and
// a member with data ignores it. Without it a member that exited before it had data would
// bootstrap a separate etcd.
func (j joining) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	if exists, err := h.Exists(ctx, joinFile); err != nil || !exists {
		return nil, err
	}
	return &op.Change{What: "remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := answers(ctx, j.cluster, h); err != nil {
			return err
		}
		return h.Remove(ctx, joinFile)
	}}, nil
}

// Gone removes the file.
func (joining) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	if ours, err := op.Recorded(ctx, h, unitFile(h.Cluster)); err != nil || !ours {
		return nil, err
	}
	if exists, err := h.Exists(ctx, joinFile); err != nil || !exists {
		return nil, err
	}
	return &op.Change{What: "remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error { return h.Remove(ctx, joinFile) }}, nil
}

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
		return steps.Advise(fmt.Errorf("this member has lost its data, and the others have no quorum: %w", err),
			"start the others with systemctl start %s; if most members have lost their data, restore all of them from a snapshot", unit)
	}
	vacant, err := m.vacate(ctx, h, others)
	if err != nil {
		return steps.Advise(err, "run etcdctl member list on another etcd host")
	}
	if vacant {
		url := peerURL(address(m.cluster, h.Host))
		h.Log.InfoContext(ctx, "add a member", "member", h.Name, "url", url)
		if err := change(ctx, h, others, "add", h.Name, "--peer-urls="+url); err != nil {
			return steps.Advise(err, "all other members must run: check with etcdctl endpoint health --cluster on another etcd host")
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

// vacate removes the former member of h. It reports whether a new member must be added: one
// that was added and never started is used.
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

// walDir returns the folder of a member's write-ahead log, by which hasData decides.
func walDir(c *manifest.Cluster) string {
	for _, a := range c.Spec.Etcd.ExtraArgs {
		if a.Name == "wal-dir" {
			return a.Value
		}
	}
	return path.Join(c.Spec.Etcd.DataDir, "member", "wal")
}

// clear deletes what an etcd that could not start has left in the data folder.
func (m member) clear(ctx context.Context, h *steps.Host) error {
	return h.RemoveAll(ctx, path.Join(m.cluster.Spec.Etcd.DataDir, "member"))
}

func isLog(name string) bool { return strings.HasSuffix(name, ".wal") }
