package node

import (
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// packagesWithin is how long an installation of packages may take, with those of
// others that are waited for.
const packagesWithin = 45 * time.Minute

func packages(c *manifest.Cluster) []op.Resource {
	return []op.Resource{op.Packages{Systems: Systems(c)}}
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
	return op.Ensure("node.install-packages", packages(c), op.Upload, within)
}

// RemovePackages is its inverse.
func RemovePackages(c *manifest.Cluster) steps.Step {
	return op.Remove("node.remove-packages", packages(c), within)
}

func within(m *steps.Meta) { m.Timeout = packagesWithin }
