package gate

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// steady is how long all etcd members must answer: long enough for a leader election and for
// a restarted member to catch up.
const steady = 15 * time.Second

// Store waits until all etcd members have answered linearizable reads for 15 seconds without
// a break, none is a learner, and there is no alarm. It runs on the host of a member.
func Store(c *manifest.Cluster) steps.Step {
	return wait{
		name:   "gate.store",
		check:  func(ctx context.Context, h *steps.Host) ([]string, error) { return etcd.StopBlockers(ctx, c, h) },
		hold:   steady,
		advice: "a member is stopped only while all others are healthy: read etcd's log on the host of the member, and check that the members' hosts reach each other",
	}.step()
}

// StoreToDefragment is Store, except that alarms about a full database do not matter:
// defragmenting resolves them.
func StoreToDefragment(c *manifest.Cluster) steps.Step {
	return wait{
		name:   "gate.store-to-defragment",
		check:  func(ctx context.Context, h *steps.Host) ([]string, error) { return etcd.DefragmentBlockers(ctx, c, h) },
		hold:   steady,
		advice: "a member is defragmented only while all others are healthy: read etcd's log on the host of the member, and check that the members' hosts reach each other",
	}.step()
}
