package node

import (
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/packages"
)

// packagesWithin is how long an installation of packages may take, with those of
// others that are waited for.
const packagesWithin = 45 * time.Minute

func fromBundle(c *manifest.Cluster) []op.Resource {
	return []op.Resource{packages.Installed{Systems: Systems(c), Pick: func(h *steps.Host, want []string) []string {
		return slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !wanted(c, h.Host, name) })
	}}}
}

// balancers are packages whose services begin to listen when they come: the bundle has
// them for the hosts before the API servers.
var balancers = []string{"haproxy", "keepalived", "nginx"}

// wanted tells whether a host gets a package that the bundle has. What the config
// asks for by name every host gets.
func wanted(c *manifest.Cluster, h manifest.Host, name string) bool {
	return !slices.Contains(balancers, name) || slices.Contains(slices.Concat(c.Spec.System.Debs, c.Spec.System.RPMs), name) ||
		slices.ContainsFunc(c.HostsWith(manifest.RoleLoadBalancer), func(b manifest.Host) bool { return b.Name == h.Name })
}

// Systems are the operating systems whose packages the config wants in the
// bundle: "debian-12".
func Systems(c *manifest.Cluster) []string {
	var out []string
	for _, system := range c.Spec.Bundle.OperatingSystems {
		for _, release := range system.Releases {
			out = append(out, manifest.Platform{Distribution: system.Name, Release: release}.System())
		}
	}
	return out
}

// InstallPackages installs the packages of the host's operating system that the
// bundle was made with.
func InstallPackages(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.install-packages", fromBundle(c), op.Upload, within)
}

// RemovePackages is its inverse.
func RemovePackages(c *manifest.Cluster) steps.Step {
	return op.Remove("node.remove-packages", fromBundle(c), within)
}

func within(m *steps.Meta) { m.Timeout = packagesWithin }
