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

// maxSkew is how far apart clocks may be: the deployment matrix's five seconds.
const maxSkew = 5 * time.Second

func timeChecks() []Check {
	return []Check{
		{
			Name: "preflight.clock", Asks: "whether the clock is near this machine's, and not before the bundle was made", Levels: "error",
			Limits: fmt.Sprintf("%s apart from the machine kubexm runs on; not before the bundle's lock", maxSkew), Reads: "date", Source: "the deployment matrix; certificates made now are not valid yet on a host that is behind",
			look: checkClock,
		},
		{
			Name: "preflight.clocks", Asks: "whether the clocks of the hosts are near each other", Levels: "error", On: OnFirst, Compares: true,
			Limits: fmt.Sprintf("%s between any two", maxSkew), Reads: "date", Source: "the deployment matrix",
			look: compare(checkClocks),
		},
		{
			Name: "preflight.time-service", Asks: "whether a service keeps the time", Levels: "error, warning, note",
			Limits: "one of chrony, ntpd, ntpsec, openntpd, systemd-timesyncd is active; an error where spec.system.ntpServers asks for chrony, and neither the host nor the bundle has it", Reads: "systemctl show", Source: "the deployment matrix; an error there, and a warning here because clocks are compared and chrony can be set up",
			look: checkTimeService,
		},
	}
}

func checkClock(_ context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	var out steps.Findings
	if off := h.Facts.ClockOffset; off.Abs() > maxSkew {
		out = append(out, steps.Finding{What: fmt.Sprintf("the clock is %s this machine's", apart(off)), Advice: "set it: let chrony run there, or `date -s` once; or mend the clock of this machine"})
	}
	if t := h.Facts.Time; !t.IsZero() && t.Before(h.Made) {
		out = append(out, steps.Finding{What: fmt.Sprintf("the clock says %s, which is before the bundle was made", t.Format("2006-01-02 15:04")), Advice: "set the clock; its battery may be empty"})
	}
	return out, nil
}

// apart says how far a clock is from another.
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

// checkClocks compares the host that is furthest ahead with all that are too far
// behind it. Each is measured against this machine's clock.
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
		if off := p.facts.ClockOffset - first.facts.ClockOffset; off < -maxSkew {
			out = append(out, steps.Finding{Host: p.Name, What: fmt.Sprintf("the clock is %s that of %s", apart(off), first.Name), Advice: "let chrony run on all hosts, with one server for all"})
		}
	}
	return out
}

func checkTimeService(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	ntp := h.Cluster.Spec.System.NTPServers
	has := func(names ...string) bool {
		return slices.ContainsFunc(h.Facts.Units, func(u runner.UnitFact) bool { return slices.Contains(names, u.Name) })
	}
	// systemd-timesyncd follows servers, and serves nobody.
	can := has("chrony.service", "chronyd.service") || has("systemd-timesyncd.service") && !slices.Contains(ntp, h.Name)
	if len(ntp) > 0 && !can && !slices.Contains(o.Systems, packages.SystemOf(h.Facts)) {
		return steps.Findings{{What: "has no chrony, which spec.system.ntpServers asks for, and the bundle carries no packages for it",
			Advice: "install chrony there; or name its operating system in spec.bundle.operatingSystems, and build the bundle again"}}, nil
	}
	for _, u := range h.Facts.Units {
		if u.Active && u.Name != "kubelet.service" {
			return nil, nil
		}
	}
	if len(ntp) > 0 {
		return steps.Findings{{What: "no service keeps the time; chrony will, as spec.system.ntpServers says", Advice: "nothing", Note: true}}, nil
	}
	return steps.Findings{{What: "no service keeps the time", Advice: "let chrony run there, or name servers in spec.system.ntpServers: clocks drift apart, and certificates and etcd's leases with them", Warning: true}}, nil
}
