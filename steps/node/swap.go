package node

import (
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// swapWithin is how long a host may take to read back what it has swapped.
const swapWithin = 20 * time.Minute

// swap comes off now before it stays off after a boot, as everything here does: see kernel.
func swap() []op.Resource {
	return []op.Resource{NoSwap{}, NoSwapInFstab(), Off{Name: "zramswap.service"}, Off{Name: "zram-config.service"}, Off{Name: "dphys-swapfile.service"}, NoSwapUnits{}}
}

// DisableSwap has a host swap to nothing, now and after a boot: the kubelet does
// not start where there is swap.
func DisableSwap() steps.Step {
	return op.Ensure("node.disable-swap", swap(), swapTime)
}

// RestoreSwap is its inverse.
func RestoreSwap() steps.Step { return op.Remove("node.restore-swap", swap(), swapTime) }

func swapTime(m *steps.Meta) { m.Timeout = swapWithin }
