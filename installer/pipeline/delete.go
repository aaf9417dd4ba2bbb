package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// awayHelp is the help of deletions about hosts that do not answer.
const awayHelp = `

If a host does not answer, the command ends before it changes anything. --skip-host NAME continues without
that host: kubexm does not connect to it, reports what stays on it, and records it in the cluster's folder
in --workdir. The next delete, reset or install that reaches the host cleans it first.

Hosts, roles and folders are those of the cluster record, even if the config differs by now. The config
only specifies how hosts are reached.`

// Delete deletes a cluster.
func Delete() plan.Pipeline {
	return plan.Pipeline{
		Name: "delete", Command: []string{"delete", "cluster"}, Group: "Delete a cluster",
		Short: "Delete a cluster and everything that was installed with it",
		Long: `Drain the nodes, reset them, and remove everything that kubexm installed, in reverse order. The
previous state of the hosts is restored. All data of the cluster and of its registry is lost.

With --preserve-data etcd's data stays with the keys of its cluster, and so do the images of the
nodes and of the registry. Add-ons and nodes remain recorded in that data. The next install adopts
all of it; a delete without the flag removes it. spec.etcd.preserveData has the same effect.` + awayHelp,
		Example:      "  kubexm delete cluster -f config.yaml --yes\n  kubexm delete cluster --bundle demo.tar.zst --key cosign.pub --yes\n  kubexm delete cluster -f config.yaml --preserve-data --yes\n  kubexm delete cluster -f config.yaml --skip-host w2 --yes",
		Confirmation: destroys, Deletes: true,
		Modules: []plan.Module{module.Drain(), module.Removal()},
	}
}

// Reset cleans hosts whose cluster no longer exists.
func Reset() plan.Pipeline {
	return plan.Pipeline{
		Name: "reset", Command: []string{"reset"},
		Short:        "Clean hosts whose cluster no longer exists",
		Long:         "Remove Kubernetes and everything that kubexm installed from the hosts of a config, without using a control plane." + awayHelp,
		Example:      "  kubexm reset -f config.yaml --yes\n  kubexm reset -f config.yaml --skip-host w2 --yes",
		Confirmation: destroys, Deletes: true,
		Modules: []plan.Module{module.Removal()},
	}
}

// destroys is what the user confirms for a deletion.
func destroys(c *manifest.Cluster) string {
	if c.Spec.Etcd.PreserveData {
		return "deletes it and preserves its data"
	}
	return "destroys it"
}
