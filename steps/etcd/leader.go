package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// MoveLeader transfers the leadership to the host's etcd member. A restart stops the leader
// last, after it has transferred the leadership: no election is needed, during which requests
// would wait.
func MoveLeader(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "etcd.lead", Timeout: time.Minute, Retry: steps.Retry{Times: 3, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			l, err := leadershipOf(ctx, c, h)
			return err == nil && l.is(c, h.Host), err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			l, err := leadershipOf(ctx, c, h)
			if err != nil || l.is(c, h.Host) {
				return err
			}
			return l.moveTo(ctx, c, h, h.Host)
		},
	}
}

// leadership is who leads etcd.
type leadership struct {
	members  []Member
	leader   uint64
	endpoint string // of the leader
}

// leadershipOf asks the member on h, which has to be a member.
func leadershipOf(ctx context.Context, c *manifest.Cluster, h *steps.Host) (leadership, error) {
	l, err := leadershipBy(ctx, h, memberOn(c, h))
	if err == nil {
		_, err = l.member(c, h.Host)
	}
	return l, err
}

// leadershipBy asks through a client that is run on h.
func leadershipBy(ctx context.Context, h *steps.Host, client Client) (l leadership, err error) {
	if l.members, err = client.Members(ctx, h); err != nil {
		return l, err
	}
	statuses, err := client.answering(ctx, h)
	if err != nil {
		return l, err
	}
	for _, s := range statuses {
		if s.Status.Header.Member == s.Status.Leader && s.Status.Leader != 0 {
			l.leader, l.endpoint = s.Status.Leader, s.Endpoint
			return l, nil
		}
	}
	return l, steps.Advise(errors.New("etcd has no leader"), "run etcdctl endpoint status --cluster on %s", h.Name)
}

// member returns the member of a host.
func (l leadership) member(c *manifest.Cluster, of manifest.Host) (Member, error) {
	i := slices.IndexFunc(l.members, func(m Member) bool { return slices.Contains(m.PeerURLs, PeerURL(c, of)) })
	if i < 0 {
		return Member{}, fmt.Errorf("etcd has no member %s", of.Name)
	}
	return l.members[i], nil
}

// is reports whether the member of a host leads.
func (l leadership) is(c *manifest.Cluster, of manifest.Host) bool {
	m, err := l.member(c, of)
	return err == nil && m.ID == l.leader
}

// moveTo transfers the leadership to the member of a host. Only the leader can do that, so the
// command connects from h to its endpoint.
func (l leadership) moveTo(ctx context.Context, c *manifest.Cluster, h *steps.Host, to manifest.Host) error {
	m, err := l.member(c, to)
	if err != nil {
		return err
	}
	client := memberOn(c, h)
	client.endpoints = []string{l.endpoint}
	_, err = client.Run(ctx, h, "move-leader", m.id())
	return err
}
