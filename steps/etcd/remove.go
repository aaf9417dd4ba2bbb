package etcd

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// RemoveMember removes the member of a host that leaves the cluster or is lost. It runs on the host
// of another member, to which the member passes the leadership first: no request waits for an
// election. c describes the cluster with both hosts.
func RemoveMember(c *manifest.Cluster, gone manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "etcd.remove-member", Timeout: 2 * time.Minute, Risk: steps.Disruptive, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			has, err := HasMemberOf(ctx, c, h, gone)
			return err == nil && !has, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			l, err := leadershipOf(ctx, c, h)
			if err != nil {
				return err
			}
			if l.is(c, gone) {
				if err := l.moveTo(ctx, c, h, h.Host); err != nil {
					return err
				}
			}
			return RemoveMemberOf(ctx, c, h, gone)
		},
	}
}
