package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/packages"
	"github.com/mensylisir/kubexm/steps/runner"
)

// MaxSkew is the largest accepted difference between two clocks, a limit of kubexm's.
const MaxSkew = 5 * time.Second

func timeChecks() []Check {
	return []Check{
		{
			Name: "preflight.clock", Question: "whether the clock agrees with the workdir host's, and is not before the bundle's build time", Levels: "error",
			Limits: fmt.Sprintf("%s of difference from the workdir host, beyond the time that the host takes to answer; not before the time of the bundle's lock file", MaxSkew), Reads: "date", Source: "kubexm's own limit; a certificate created now is not valid yet on a host whose clock is behind",
			look: checkClock,
		},
		{
			Name: "preflight.clocks", Question: "whether the clocks of all hosts agree", Levels: "error", On: OnFirst, Compares: true,
			Limits: fmt.Sprintf("%s of difference between any two, beyond the time that they take to answer", MaxSkew), Reads: "date", Source: "kubexm's own limit",
			look: compare(checkClocks),
		},
		{
			Name: "preflight.time-service", Question: "whether a time synchronisation service is active", Levels: "error, warning, note",
			Limits: "one of chrony, ntpd, ntpsec, openntpd, systemd-timesyncd is active; an error if spec.system.ntpServers requires chrony, and neither the host nor the bundle has it", Reads: "systemctl show", Source: "kubexm's own limit; only a warning, because the clocks are compared and kubexm can set up chrony",
			look: checkTimeService,
		},
	}
}

func checkClock(_ context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	var out steps.Findings
	if off := h.Facts.ClockOffset; off.Abs() > MaxSkew {
		out = append(out, steps.Finding{What: fmt.Sprintf("the clock is %s that of the workdir host", apart(off)), Advice: "run chrony on the host, or set its clock once with date -s; if the workdir host's clock is wrong, correct that one"})
	}
	if t := h.Facts.Time; !t.IsZero() && t.Before(h.BundleTime) {
		out = append(out, steps.Finding{What: fmt.Sprintf("the clock shows %s, which is before the bundle was built", t.Format("2006-01-02 15:04")), Advice: "set the clock; the battery of the hardware clock may be empty"})
	}
	return out, nil
}

// apart describes the offset of a clock from another: "6.1s ahead of".
func apart(off time.Duration) string {
	word := "ahead of"
	if off < 0 {
		word = "behind"
	}
	if off = off.Abs(); off > 10*time.Second {
		off = off.Round(time.Second)
	}
	return off.Round(100*time.Millisecond).String() + " " + word
}

// checkClocks compares the clock that is furthest ahead with all others. Their offsets
// are relative to the workdir host's clock.
func checkClocks(_ *manifest.Cluster, all []peer) steps.Findings {
	var first *peer
	for i := range all {
		if f := &all[i]; !f.facts.Time.IsZero() && (first == nil || f.facts.ClockOffset > first.facts.ClockOffset) {
			first = f
		}
	}
	var out steps.Findings
	for _, p := range all {
		if p.facts.Time.IsZero() {
			continue
		}
		if off := p.facts.ClockOffset - first.facts.ClockOffset; off < -MaxSkew {
			out = append(out, steps.Finding{Host: p.Name, What: fmt.Sprintf("the clock is %s that of %s", apart(off), first.Name), Advice: "run chrony on all hosts, with the same time server"})
		}
	}
	return out
}

func checkTimeService(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	ntp := h.Cluster.Spec.System.NTPServers
	has := func(names ...string) bool {
		return slices.ContainsFunc(h.Facts.Units, func(u runner.UnitFact) bool { return slices.Contains(names, u.Name) })
	}
	// systemd-timesyncd is only a client: it cannot serve time to other hosts.
	can := has("chrony.service", "chronyd.service") || has("systemd-timesyncd.service") && !slices.Contains(ntp, h.Name)
	if len(ntp) > 0 && !can && !slices.Contains(o.Systems, packages.SystemOf(h.Facts)) {
		return steps.Findings{{What: "chrony is missing: spec.system.ntpServers requires it, and the bundle has no packages for this operating system",
			Advice: "install chrony on the host; or add its operating system to spec.bundle.operatingSystems and build the bundle again"}}, nil
	}
	for _, u := range h.Facts.Units {
		if u.Active && u.Name != "kubelet.service" {
			return nil, nil
		}
	}
	if len(ntp) > 0 {
		return steps.Findings{{What: "no time synchronisation service is active; kubexm sets up chrony, as spec.system.ntpServers requires", Advice: "no action needed", Note: true}}, nil
	}
	return steps.Findings{{What: "no time synchronisation service is active", Advice: "run chrony on the host, or set spec.system.ntpServers: clocks drift apart, and certificates and etcd leases depend on them", Warning: true}}, nil
}
