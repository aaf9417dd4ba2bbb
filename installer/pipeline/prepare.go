package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// Prepare prepares hosts as an installation does: the next installation skips these steps.
func Prepare() plan.Pipeline {
	return plan.Pipeline{
		Name: "prepare", Command: []string{"hosts", "prepare"}, Group: "Prepare hosts for a cluster, or restore them",
		Short: "Prepare hosts for a cluster",
		Long: `Check all hosts of a config as preflight does, then prepare them: turn off swap, SELinux and the
firewall; set up host names, packages, time, name servers, kernel modules and kernel settings. install
does the same first and skips what is already done. docs/hosts.md describes what is changed, and how to
exclude a setting.

The packages come from the bundle: it is required if the config lists operating systems.`,
		Example: "  kubexm hosts prepare -f config.yaml --bundle demo.tar.zst \\\n    --key cosign.pub\n  kubexm hosts prepare -f config.yaml --dry-run",
		Bundle:  plan.BundleNeeded, HostsOnly: true,
		Modules: []plan.Module{module.Preflight(), module.Prepare()},
	}
}

// Restore is the inverse of Prepare, for hosts on which no cluster was created.
func Restore() plan.Pipeline {
	return plan.Pipeline{
		Name: "restore", Command: []string{"hosts", "restore"},
		Short: "Restore the previous settings of prepared hosts",
		Long: `Undo what "kubexm hosts prepare" did. The previous settings are restored from the record on each
host. Hosts on which a cluster was created are refused: delete cluster and reset restore those.`,
		Example:      "  kubexm hosts restore -f config.yaml --yes\n  kubexm hosts restore -f config.yaml --dry-run",
		Confirmation: func(*manifest.Cluster) string { return "undoes the preparation of its hosts" }, HostsOnly: true,
		Modules: []plan.Module{module.Restore()},
	}
}
