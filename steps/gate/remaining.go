package gate

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// RemainingStore waits until all etcd members but those on some hosts have answered for 15
// seconds without a break. Those may leave then, or may be lost already, or are about to join. It
// runs on the host of another member.
func RemainingStore(c *manifest.Cluster, without []manifest.Host) steps.Step {
	return wait{
		name: "gate.remaining-store",
		check: func(ctx context.Context, h *steps.Host) ([]string, error) {
			return etcd.RemovalBlockers(ctx, c, h, without)
		},
		hold:   steady,
		advice: "a member is added or removed only while all others are healthy; if most members are lost, restore etcd from a snapshot",
	}.step()
}
