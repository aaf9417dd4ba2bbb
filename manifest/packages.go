package manifest

// notCarried lists fields that require packages, if the bundle contains no packages: nothing
// would be installed for these fields.
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
			out = append(out, Problem{Path: f.path, Message: "cannot be installed: without spec.bundle.operatingSystems a bundle contains no packages",
				Advice: "list the hosts' operating systems in spec.bundle.operatingSystems, or leave it out"})
		}
	}
	return out
}

// PackageAdvice warns of packages that must be installed on the hosts already, because the
// bundle contains no packages. An empty list of operating systems in the config suppresses the
// warning about packages of nodes.
func (c *Cluster) PackageAdvice() Problems {
	if len(c.Spec.Hosts) == 0 || len(c.Spec.Bundle.OperatingSystems) > 0 {
		return nil
	}
	const path, advice = "spec.bundle.operatingSystems", "list the hosts' operating systems in spec.bundle.operatingSystems, or install the packages on the hosts"
	var out Problems
	if len(c.Spec.System.NTPServers) > 0 {
		out = append(out, Problem{Severity: Warning, Path: "spec.system.ntpServers", Message: "needs chrony on every host, but the bundle contains no packages", Advice: advice + " (preflight checks it)"})
	}
	if c.Spec.Bundle.OperatingSystems == nil {
		out = append(out, Problem{Severity: Warning, Path: path, Message: "is not set: the bundle contains none of the packages that nodes need, such as iptables, conntrack and socat", Advice: advice + " and write []"})
	}
	return out
}
