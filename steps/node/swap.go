package node

import (
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// swapWithin is how long a host may take to read swapped data back into memory.
const swapWithin = 20 * time.Minute

// swap turns swap off in the running kernel first, then at boot: see kernel for the order.
func swap() []op.Resource {
	return []op.Resource{NoSwap{}, NoSwapInFstab(), Off{Name: "zramswap.service"}, Off{Name: "zram-config.service"}, Off{Name: "dphys-swapfile.service"}, NoSwapUnits{}}
}

// DisableSwap turns swap off, immediately and at boot: by default a kubelet does not start
// on a host with swap.
func DisableSwap() steps.Step {
	return op.Ensure("node.disable-swap", swap(), swapTime)
}

// RestoreSwap turns on the swap that was on before, immediately and at boot.
func RestoreSwap() steps.Step { return op.Remove("node.restore-swap", swap(), swapTime) }

func swapTime(m *steps.Meta) { m.Timeout = swapWithin }
