package runnertest

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// swaps deactivates and activates the only swap of the host: /kubexm/a swap, priority 5.
func swaps(_ *testing.T, b *bench) {
	for _, bad := range []string{"", "relative", "-a", "/a/../b"} {
		if b.r.SwapOff(b.ctx, bad) == nil || b.r.SwapOn(b.ctx, runner.Swap{Path: bad}) == nil {
			b.Fatalf("swap %q was not refused", bad)
		}
	}
	if b.Sim == nil && !b.Machine {
		_, _, err := b.r.Swaps(b.ctx)
		b.ok(err)
		return // it is this machine's
	}
	if b.Sim != nil {
		b.Sim.AddSwap("/kubexm/a swap", "5")
	}
	area := runner.Swap{Path: "/kubexm/a swap", Priority: 5}
	is := func(want ...runner.Swap) {
		b.Helper()
		active, _, err := b.r.Swaps(b.ctx)
		b.ok(err)
		if !slices.Equal(active, want) {
			b.Fatalf("swap is %v, want %v", active, want)
		}
	}
	is(area)
	b.ok(b.r.SwapOff(b.ctx, area.Path))
	is()
	b.refused(b.r.SwapOff(b.ctx, area.Path))
	b.ok(b.r.SwapOn(b.ctx, area))
	is(area)
	b.refused(b.r.SwapOn(b.ctx, runner.Swap{Path: "/kubexm/none", Priority: -2}))
	is(area)
}

func selinux(_ *testing.T, b *bench) {
	if b.Sim == nil && !b.Machine {
		return
	}
	if b.Sim != nil {
		_, err := b.r.SELinux(b.ctx)
		b.is(err, fs.ErrNotExist)
		b.is(b.r.SetSELinux(b.ctx, false), fs.ErrNotExist)
		b.Sim.SetMachine(func(m *conntest.Machine) { m.SELinux = "Enforcing" })
	}
	for _, want := range []bool{true, false, true} {
		b.ok(b.r.SetSELinux(b.ctx, want))
		got, err := b.r.SELinux(b.ctx)
		b.ok(err)
		if got != want {
			b.Fatalf("SELinux is enforcing: %t, want %t", got, want)
		}
	}
}

func ufw(_ *testing.T, b *bench) {
	if b.Sim == nil && !b.Machine {
		return
	}
	if b.Sim != nil {
		_, err := b.r.UFW(b.ctx)
		b.is(err, fs.ErrNotExist)
		b.Sim.AddUFW(true)
	}
	for _, want := range []bool{false, false, true, true} {
		b.ok(b.r.SetUFW(b.ctx, want))
		got, err := b.r.UFW(b.ctx)
		b.ok(err)
		if got != want {
			b.Fatalf("ufw is on: %t, want %t", got, want)
		}
	}
}

// rename changes the host name and restores it.
func rename(_ *testing.T, b *bench) {
	if b.Sim == nil && !b.Machine {
		return
	}
	before, err := b.r.Hostname(b.ctx)
	b.ok(err)
	for _, name := range []string{"kubexm-suite", "Old_Name", "(none)", before} {
		b.ok(b.r.SetHostname(b.ctx, name))
		got, err := b.r.Hostname(b.ctx)
		b.ok(err)
		if got != name {
			b.Fatalf("the name is %q, want %q", got, name)
		}
	}
}
