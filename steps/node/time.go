package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Time is what spec.system.ntpServers means for one host.
type Time struct {
	Sources []string // whom it follows: addresses and names outside of the cluster, addresses of its hosts
	Serves  bool     // it is named itself: the cluster's hosts may follow it
	Shared  bool     // several hosts are named, of which one leads while nobody outside answers
	Allow   []string // addresses that may ask it
}

// TimeOf works out whom a host follows. A host that is named serves the others, and
// follows those named that are no hosts, and the other hosts named. All others
// follow everybody named.
func TimeOf(c *manifest.Cluster, host string) Time {
	var t Time
	named := 0
	for _, entry := range c.Spec.System.NTPServers {
		i := slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == entry })
		switch {
		case i < 0:
			t.Sources = append(t.Sources, entry)
			continue
		case entry == host:
			t.Serves = true
		default:
			t.Sources = append(t.Sources, Address(c.Spec.Hosts[i]))
		}
		named++
	}
	if t.Shared = named > 1; t.Serves {
		for _, h := range c.Spec.Hosts {
			t.Allow = append(t.Allow, addresses(h)...)
		}
	}
	return t
}

func addresses(h manifest.Host) []string {
	if len(h.InternalAddress) > 0 {
		return h.InternalAddress
	}
	return []string{h.Address}
}

// Chrony is the configuration of chrony; see chrony.conf(5). drift is where the
// distribution's package keeps what it learns of the clock.
func (t Time) Chrony(drift string) []byte {
	var b strings.Builder
	b.WriteString("# Written by kubexm from spec.system.ntpServers.\n")
	for _, s := range t.Sources {
		fmt.Fprintf(&b, "server %s iburst\n", s)
	}
	// A clock that is far off is set in the first three answers, and slewed later on:
	// certificates and leases do not like jumps.
	fmt.Fprintf(&b, "driftfile %s\nmakestep 1.0 3\nrtcsync\n", drift)
	if !t.Serves {
		return []byte(b.String())
	}
	// Without anybody outside, the cluster's hosts agree with each other: of several
	// that serve, one leads (orphan).
	if b.WriteString("local stratum 10"); t.Shared {
		b.WriteString(" orphan")
	}
	b.WriteString("\n")
	for _, a := range t.Allow {
		fmt.Fprintf(&b, "allow %s\n", a)
	}
	return []byte(b.String())
}

// chronyPaths tells where a distribution's package has chrony's configuration, its
// record of the clock, and its unit.
func chronyPaths(h *steps.Host) (conf, drift, unit string) {
	if h.Facts.PackageTool == "apt-get" {
		return "/etc/chrony/chrony.conf", "/var/lib/chrony/chrony.drift", "chrony.service"
	}
	return "/etc/chrony.conf", "/var/lib/chrony/drift", "chronyd.service"
}

func hasChrony(ctx context.Context, h *steps.Host) (bool, error) {
	_, err := h.FindProgram(ctx, "chronyd")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// timesyncd is what hosts of Debian's family have, by default, in place of chrony.
const timesyncd = "systemd-timesyncd.service"

// followsOnly tells whether a host without chrony can do with systemd-timesyncd,
// which follows and does not serve. The two packages exclude each other, and
// kubexm takes no package of the host's away.
func followsOnly(t Time) func(context.Context, *steps.Host) (bool, error) {
	return func(ctx context.Context, h *steps.Host) (bool, error) {
		has, err := hasChrony(ctx, h)
		if err != nil || has {
			return false, err
		}
		u, err := h.Unit(ctx, timesyncd)
		switch {
		case err != nil:
			return false, err
		case !u.Found():
			return false, op.Later(steps.Advise(errors.New("the host has no chrony"),
				"install chrony on %s, or name its operating system in spec.bundle.operatingSystems and build the bundle again: chrony comes along", h.Name))
		case t.Serves:
			return false, op.Later(steps.Advise(errors.New("the host is to serve time, and has systemd-timesyncd in place of chrony"),
				"remove the package systemd-timesyncd on %s and run the command again, with a bundle that has chrony for its operating system; or name another host in spec.system.ntpServers", h.Name))
		}
		return true, nil
	}
}

func syncTime(c *manifest.Cluster) func(*steps.Host) []op.Resource {
	return func(h *steps.Host) []op.Resource {
		t := TimeOf(c, h.Name)
		conf, drift, unit := chronyPaths(h)
		body := func(b []byte) func(context.Context, *steps.Host) ([]byte, error) {
			return func(context.Context, *steps.Host) ([]byte, error) { return b, nil }
		}
		return slices.Concat(
			op.Given(hasChrony, op.Text(conf, body(t.Chrony(drift))), Traces{Of: unit, Paths: []string{drift}}, op.Unit{Name: unit}),
			op.Given(followsOnly(t),
				op.Dir{Path: "/etc/systemd/timesyncd.conf.d"},
				op.Text("/etc/systemd/timesyncd.conf.d/kubexm.conf", body([]byte("# Written by kubexm.\n[Time]\nNTP="+strings.Join(t.Sources, " ")+"\n"))),
				op.Unit{Name: timesyncd}))
	}
}

// SyncTime has a host follow the servers of spec.system.ntpServers, or be one.
func SyncTime(c *manifest.Cluster) steps.Step {
	return op.EnsureOn("node.configure-chrony", syncTime(c))
}

// RestoreTime is its inverse.
func RestoreTime(c *manifest.Cluster) steps.Step {
	return op.RemoveOn("node.restore-chrony", syncTime(c))
}

// otherClocks are services that set the clock as chrony does, under the names that
// distributions give them.
func otherClocks() []op.Resource {
	var rs []op.Resource
	for _, unit := range []string{timesyncd, "ntp.service", "ntpd.service", "ntpsec.service", "openntpd.service"} {
		rs = append(rs, op.Given(hasChrony, Off{Name: unit})...)
	}
	return rs
}

// StopOtherClocks leaves the clock to chrony, where the host has it.
func StopOtherClocks() steps.Step { return op.Ensure("node.stop-other-clocks", otherClocks()) }

// RestoreOtherClocks is its inverse: after chrony is gone, with which they exclude
// each other.
func RestoreOtherClocks() steps.Step {
	return op.Remove("node.restore-other-clocks", otherClocks())
}
