package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// MoveLeader transfers the leadership to the host's etcd member. A restart stops the leader
// last, after it has transferred the leadership: no election is needed, during which requests
// would wait.
func MoveLeader(c *manifest.Cluster) steps.Step {
	leads := func(ctx context.Context, h *steps.Host) (is bool, own Member, leader string, err error) {
		client := memberOn(c, h)
		all, err := client.Members(ctx, h)
		if err != nil {
			return false, own, "", err
		}
		i := slices.IndexFunc(all, func(m Member) bool { return slices.Contains(m.PeerURLs, PeerURL(c, h.Host)) })
		if i < 0 {
			return false, own, "", fmt.Errorf("etcd has no member %s", h.Name)
		}
		statuses, err := client.Statuses(ctx, h)
		if err != nil {
			return false, own, "", err
		}
		for _, s := range statuses {
			if s.Status.Header.Member == s.Status.Leader && s.Status.Leader != 0 {
				return s.Status.Leader == all[i].ID, all[i], s.Endpoint, nil
			}
		}
		return false, own, "", steps.Advise(errors.New("etcd has no leader"), "run etcdctl endpoint status --cluster on %s", h.Name)
	}
	return &op.Do{
		M: steps.Meta{Name: "etcd.lead", Timeout: time.Minute, Retry: steps.Retry{Times: 3, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			is, _, _, err := leads(ctx, h)
			return is, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			is, own, leader, err := leads(ctx, h)
			if err != nil || is {
				return err
			}
			client := memberOn(c, h)
			client.endpoints = []string{leader} // only the leader can transfer the leadership
			_, err = client.Run(ctx, h, "move-leader", own.id())
			return err
		},
	}
}

// Restart restarts the host's etcd service if all members are healthy, and waits until it
// answers.
func Restart(c *manifest.Cluster) steps.Step {
	return op.Again("etcd.restart", func(ctx context.Context, h *steps.Host) error {
		if err := MayStop(ctx, c, h); err != nil {
			return err
		}
		if err := op.RestartUnit(ctx, h, unit); err != nil {
			return err
		}
		return answers(ctx, c, h)
	})
}

// MayStop returns why the member of a host must not be stopped now; nil if it may be. It
// repeats the check of the preceding gate, because the state may have changed since.
func MayStop(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	missing, err := StopBlockers(ctx, c, h)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return steps.Advise(errors.New("etcd on "+h.Name+" was not stopped: "+strings.Join(missing, "; ")), "repair that first: without this member etcd may lose its quorum")
	}
	return nil
}
