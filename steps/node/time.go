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

// Time is the configuration of one host for spec.system.ntpServers.
type Time struct {
	Sources []string // its time servers: names and addresses outside of the cluster, addresses of hosts
	Serves  bool     // the host is listed itself: it serves time to the cluster's hosts
	Shared  bool     // several hosts are listed: one of them leads if no outside server answers
	Allow   []string // addresses of its clients
}

// TimeOf returns the time configuration of a host. A listed host serves time to all hosts;
// its sources are the other listed servers and hosts. The sources of other hosts are all
// that are listed.
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

// Chrony returns the configuration of chrony; see chrony.conf(5). drift is the path of the
// drift file in the distribution's package.
func (t Time) Chrony(drift string) []byte {
	var b strings.Builder
	b.WriteString("# Written by kubexm from spec.system.ntpServers.\n")
	for _, s := range t.Sources {
		fmt.Fprintf(&b, "server %s iburst\n", s)
	}
	// A clock that is far off is stepped during the first three updates, and only slewed
	// later: jumps disturb certificates and leases.
	fmt.Fprintf(&b, "driftfile %s\nmakestep 1.0 3\nrtcsync\n", drift)
	if !t.Serves {
		return []byte(b.String())
	}
	// Without an outside server, the cluster's hosts synchronise with each other: of several
	// servers, one leads (orphan).
	if b.WriteString("local stratum 10"); t.Shared {
		b.WriteString(" orphan")
	}
	b.WriteString("\n")
	for _, a := range t.Allow {
		fmt.Fprintf(&b, "allow %s\n", a)
	}
	return []byte(b.String())
}

// chronyPaths returns the configuration, drift file and unit of chrony in a distribution's
// package.
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

// timesyncd is the default time client of Debian and its derivatives.
const timesyncd = "systemd-timesyncd.service"

// followsOnly reports whether systemd-timesyncd suffices for a host without chrony: it is
// only a client. The two packages conflict, and kubexm removes no package of the host.
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
			return false, op.Later(steps.Advise(errors.New("chrony is not installed on the host"),
				"install chrony on %s, or add its operating system to spec.bundle.operatingSystems and build the bundle again, which then includes chrony", h.Name))
		case t.Serves:
			return false, op.Later(steps.Advise(errors.New("the host must serve time, but has systemd-timesyncd instead of chrony"),
				"remove the package systemd-timesyncd on %s and run the command again with a bundle that has chrony for its operating system; or list another host in spec.system.ntpServers", h.Name))
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
			op.When(hasChrony, op.Text(conf, body(t.Chrony(drift))), op.Traces{Of: unit, Paths: []string{drift}}, op.Unit{Name: unit}),
			op.When(followsOnly(t),
				op.Dir{Path: "/etc/systemd/timesyncd.conf.d"},
				op.Text("/etc/systemd/timesyncd.conf.d/kubexm.conf", body([]byte("# Written by kubexm.\n[Time]\nNTP="+strings.Join(t.Sources, " ")+"\n"))),
				op.Unit{Name: timesyncd}))
	}
}

// SyncTime configures a host as a client of the servers in spec.system.ntpServers, and as a
// time server if it is listed there.
func SyncTime(c *manifest.Cluster) steps.Step {
	return op.EnsureOn("node.configure-chrony", syncTime(c))
}

// RestoreTime restores the host's own time configuration.
func RestoreTime(c *manifest.Cluster) steps.Step {
	return op.RemoveOn("node.restore-chrony", syncTime(c))
}

// otherClocks are the units of other services that set the clock, under the names of all
// distributions.
func otherClocks() []op.Resource {
	var rs []op.Resource
	for _, unit := range []string{timesyncd, "ntp.service", "ntpd.service", "ntpsec.service", "openntpd.service"} {
		rs = append(rs, op.When(hasChrony, Off{Name: unit})...)
	}
	return rs
}

// StopOtherClocks stops and disables other time services on a host with chrony.
func StopOtherClocks() steps.Step { return op.Ensure("node.stop-other-clocks", otherClocks()) }

// RestoreOtherClocks restores the other time services. It runs after chrony was removed,
// because the services conflict.
func RestoreOtherClocks() steps.Step {
	return op.Remove("node.restore-other-clocks", otherClocks())
}
