package gate

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// steady is how long all members of the store have to answer: what was restarted before
// has elected a leader and caught up by then.
const steady = 15 * time.Second

// Store waits until all members of the store have answered a read that most of them have
// to agree on for 15 seconds without a break, none of them a learner, and none with an
// alarm. It is asked on the host of a member.
func Store(c *manifest.Cluster) steps.Step {
	return wait{
		name:   "gate.store",
		look:   func(ctx context.Context, h *steps.Host) ([]string, error) { return etcd.Missing(ctx, c, h) },
		hold:   steady,
		advice: "a member is stopped only while all others are healthy: see the log of etcd on the host of the member, and whether the hosts of members reach each other",
	}.step()
}
