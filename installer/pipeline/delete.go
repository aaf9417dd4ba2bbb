package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// awayHelp is what pipelines that take a cluster away say of hosts that do not answer.
const awayHelp = `

A host that does not answer ends the command before anything changes. --skip-host NAME goes on without
it: the host is not called, the command says what stays on it, and the cluster's folder in --workdir
remembers it. The next delete, reset or install that reaches the host cleans it first.

The record of what was applied counts, and not what the config says by now of hosts, roles and
folders: the config says how hosts are reached.`

// Delete takes a cluster away.
func Delete() plan.Pipeline {
	return plan.Pipeline{
		Name: "delete", Command: []string{"delete", "cluster"}, Group: "Take a cluster away",
		Short: "Take a cluster away, with everything that came with it",
		Long: `Drain the nodes, reset them, and remove everything that kubexm brought, in reverse order:
what was there before comes back. All data of the cluster and of its registry is lost.

With --preserve-data etcd's data stays with the keys of its cluster, and so do the images of the
nodes and of the registry; add-ons and nodes stay as they are in that data. The next install takes
it all up, and a delete without the flag removes it. spec.etcd.preserveData does the same.` + awayHelp,
		Example: "  kubexm delete cluster -f config.yaml --yes\n  kubexm delete cluster --bundle demo.tar.zst --key cosign.pub --yes\n  kubexm delete cluster -f config.yaml --preserve-data --yes\n  kubexm delete cluster -f config.yaml --skip-host w2 --yes",
		Asks:    destroys, Away: true,
		Modules: []plan.Module{module.Drain(), module.Removal()},
	}
}

// Reset cleans hosts whose cluster is gone.
func Reset() plan.Pipeline {
	return plan.Pipeline{
		Name: "reset", Command: []string{"reset"},
		Short:   "Clean hosts whose cluster is gone",
		Long:    "Take Kubernetes and everything that kubexm brought off the hosts of a config, without asking a control plane." + awayHelp,
		Example: "  kubexm reset -f config.yaml --yes\n  kubexm reset -f config.yaml --skip-host w2 --yes",
		Asks:    destroys, Away: true,
		Modules: []plan.Module{module.Removal()},
	}
}

// destroys is what a person confirms of a cluster that is taken away.
func destroys(c *manifest.Cluster) string {
	if c.Spec.Etcd.PreserveData {
		return "takes it away, and leaves its data"
	}
	return "destroys it"
}
