package manifest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateSystem(c *Cluster) {
	for i, what := range c.Spec.System.Keep {
		if slices.Contains(c.Spec.System.Keep[:i], what) {
			d.Warn(document.Indexed("spec.system.keep", i), "write it once", "%s is listed twice", what)
		}
	}
	for i, server := range c.Spec.System.NTPServers {
		if slices.Contains(c.Spec.System.NTPServers[:i], server) {
			d.Warn(document.Indexed("spec.system.ntpServers", i), "write it once", "%s is listed twice", server)
		}
	}
	for i, r := range c.Spec.Extra.Resolves {
		at := document.Indexed("spec.extra.resolves", i)
		switch {
		case r.Address != "" && slices.Contains(c.Spec.Extra.Resolves[:i], r):
			d.Warn(at, "write it once", "%s is listed twice", r.Address)
		case i == mostResolvers:
			d.Warn(at, "list at most three", "the C library queries only the first three name servers of a host")
		}
	}
}

// mostResolvers is the maximum number of name servers of the C library: MAXNS in resolv.conf(5).
const mostResolvers = 3
