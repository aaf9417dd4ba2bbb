package manifest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateSystem(c *Cluster) {
	for i, what := range c.Spec.System.Keep {
		if slices.Contains(c.Spec.System.Keep[:i], what) {
			d.Warn(document.Indexed("spec.system.keep", i), "write it once", "%s stands twice", what)
		}
	}
	for i, server := range c.Spec.System.NTPServers {
		if slices.Contains(c.Spec.System.NTPServers[:i], server) {
			d.Warn(document.Indexed("spec.system.ntpServers", i), "write it once", "%s stands twice", server)
		}
	}
	for i, r := range c.Spec.Extra.Resolves {
		at := document.Indexed("spec.extra.resolves", i)
		switch {
		case r.Address != "" && slices.Contains(c.Spec.Extra.Resolves[:i], r):
			d.Warn(at, "write it once", "%s stands twice", r.Address)
		case i == mostResolvers:
			d.Warn(at, "name three at most", "the C library asks the first three name servers of a host and no others")
		}
	}
}

// mostResolvers is MAXNS of resolv.conf(5).
const mostResolvers = 3
