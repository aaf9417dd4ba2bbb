package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// Prepare makes hosts ready as a creation does, and does no more: the next creation
// finds them so.
func Prepare() plan.Pipeline {
	return plan.Pipeline{
		Name: "prepare", Command: []string{"hosts", "prepare"}, Group: "Make hosts ready, and give them back",
		Short: "Make hosts ready for a cluster",
		Long: `Look at all hosts of a config as preflight does, and make them ready: swap, SELinux and firewall off,
names, packages, time, name servers, kernel modules and settings. install does the same first, and
passes over what is done. docs/hosts.md tells what is changed, and how to leave it as it is.

The packages come from the bundle: it is needed where the config names operating systems.`,
		Example: "  kubexm hosts prepare -f config.yaml --bundle demo.tar.zst \\\n    --key cosign.pub\n  kubexm hosts prepare -f config.yaml --dry-run",
		Bundle:  plan.BundleNeeded, HostsOnly: true,
		Modules: []plan.Module{module.Preflight(), module.Prepare()},
	}
}

// Restore is the inverse of Prepare, for hosts on which no cluster was made.
func Restore() plan.Pipeline {
	return plan.Pipeline{
		Name: "restore", Command: []string{"hosts", "restore"},
		Short: "Give hosts back what they had before",
		Long: `Undo what "kubexm hosts prepare" did, by what each host has on record: what was there before comes
back. Hosts on which a cluster was made are refused; delete cluster and reset give those back.`,
		Example: "  kubexm hosts restore -f config.yaml --yes\n  kubexm hosts restore -f config.yaml --dry-run",
		Asks:    func(*manifest.Cluster) string { return "takes away what makes its hosts ready" }, HostsOnly: true,
		Modules: []plan.Module{module.Restore()},
	}
}
