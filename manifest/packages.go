package manifest

// notCarried lists fields that ask for packages of a bundle that holds none: nothing
// would be installed for them.
func (c *Cluster) notCarried() Problems {
	if len(c.Spec.Bundle.OperatingSystems) > 0 {
		return nil
	}
	var out Problems
	for _, f := range []struct {
		path  string
		names []string
	}{{"spec.system.rpms", c.Spec.System.RPMs}, {"spec.system.debs", c.Spec.System.Debs}} {
		if len(f.names) > 0 {
			out = append(out, Problem{Path: f.path, Message: "cannot be installed: without spec.bundle.operatingSystems a bundle carries no packages",
				Advice: "name the hosts' operating systems there, or leave it out"})
		}
	}
	return out
}

// PackageAdvice warns of what hosts have to have by themselves where the bundle carries
// no packages. A config that writes an empty list of operating systems has decided that.
func (c *Cluster) PackageAdvice() Problems {
	if len(c.Spec.Hosts) == 0 || len(c.Spec.Bundle.OperatingSystems) > 0 {
		return nil
	}
	const path, advice = "spec.bundle.operatingSystems", "name the hosts' operating systems there; or see to it that the hosts have them"
	var out Problems
	if len(c.Spec.System.NTPServers) > 0 {
		out = append(out, Problem{Severity: Warning, Path: "spec.system.ntpServers", Message: "needs chrony on every host, and the bundle carries no packages", Advice: advice + ": preflight looks"})
	}
	if c.Spec.Bundle.OperatingSystems == nil {
		out = append(out, Problem{Severity: Warning, Path: path, Message: "is not written: the bundle carries none of the packages that nodes need, as iptables, conntrack and socat", Advice: advice + ", and write []"})
	}
	return out
}
