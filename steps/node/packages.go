package node

import (
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/packages"
)

// packagesWithin is the timeout of a package installation, including the wait for another
// program's.
const packagesWithin = 45 * time.Minute

func fromBundle(c *manifest.Cluster) []op.Resource {
	return []op.Resource{packages.Installed{Systems: Systems(c), Pick: func(h *steps.Host, want []string) []string {
		return slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !wanted(c, h.Host, name) })
	}}}
}

// balancers are packages whose services listen as soon as they are installed. The bundle has
// them for load balancer hosts.
var balancers = []string{"haproxy", "keepalived", "nginx", "libnginx-mod-stream | nginx-mod-stream"}

// wanted reports whether a package of the bundle is installed on a host. Packages that the
// config lists by name are installed on every host.
func wanted(c *manifest.Cluster, h manifest.Host, name string) bool {
	return !slices.Contains(balancers, name) || slices.Contains(slices.Concat(c.Spec.System.Debs, c.Spec.System.RPMs), name) ||
		slices.ContainsFunc(c.HostsWith(manifest.RoleLoadBalancer), func(b manifest.Host) bool { return b.Name == h.Name })
}

// Systems returns the operating systems for which the config requires packages in the
// bundle, such as "debian-12".
func Systems(c *manifest.Cluster) []string {
	var out []string
	for _, system := range c.Spec.Bundle.OperatingSystems {
		for _, release := range system.Releases {
			out = append(out, manifest.Platform{Distribution: system.Name, Release: release}.System())
		}
	}
	return out
}

// InstallPackages installs the bundle's packages for the host's operating system.
func InstallPackages(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.install-packages", fromBundle(c), op.Upload, within)
}

// RemovePackages removes the packages that kubexm has installed on the host.
func RemovePackages(c *manifest.Cluster) steps.Step {
	return op.Remove("node.remove-packages", fromBundle(c), within)
}

func within(m *steps.Meta) { m.Timeout = packagesWithin }
