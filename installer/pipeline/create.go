package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Create installs a cluster. A failed step is undone on its host only: nine workers that have
// joined stay joined if the tenth fails, and the next run continues from there.
func Create() plan.Pipeline {
	return plan.Pipeline{
		Name: "create", Command: []string{"install"}, Args: plan.Archive,
		Short: "Create the cluster that a bundle was built for",
		Long: `Verify a bundle, connect to every host, check all hosts, and create the cluster: the container
runtime, the images from the archive, the control plane, the pod network and the workers. install
ends when all nodes are Ready. Images are sent to each node; if the config has a registry, kubexm
fills it and the nodes pull from it. kubexm runs on a machine outside the cluster and connects over
SSH. No packet leaves the site.

install is idempotent: run it again at any time, and it skips what is already done. Ctrl-C once lets
running steps end, twice interrupts them. On a terminal a live view shows which step runs on which
host. With --plain, or in a pipe, kubexm prints lines; --progress selects the form. With -o json each
event is one JSON object on a line of standard output, and the last line is the summary.

A delta ("kubexm bundle build --since") is installed like a complete bundle. kubexm reads what the
delta leaves out from the archives in --base. Archives of earlier runs on this machine are used as well, if they
still exist at the same path. kubexm also reads image layers from the site's registry. If an
artifact is in none of them, kubexm lists it and changes nothing.

Before it changes anything, install checks all hosts as "kubexm preflight" does. --skip-checks skips
checks; the output and the run's journal list the skipped ones.

A finished cluster keeps its versions, its hosts and the settings that are fixed at its creation. A
config or a bundle that differs is refused with exit code 3, and every difference is listed. New hosts
join. install also refuses a first master whose machine was replaced. docs/existing-cluster.md lists
the fields.

If a host does not answer, install ends before it changes anything. On a finished cluster --skip-host
NAME continues without the host, even if it is the first master. kubexm does not connect to that host,
reports what is not done on it, and lists it in the cluster record. docs/hosts-down.md lists which
hosts are required.

--resume skips even the check of steps that the last run completed, which saves time. It relies on the
journal of that run: config, bundle and kubexm must be the same. Hosts that have rebooted since, or
that another run has changed, are checked completely.

A step that fails on a host is undone there; what was done before stays. --rollback task undoes all
that this run did on the host in the same task, back to a step that cannot be undone. docs/faults.md
has details.

install uses the bundle's own config unless -f specifies another. Bundles contain no secrets: put them
in the config of -f, or in the environment variables that the command lists when they are missing.

Of this machine the bundle's own config reads only SSH's default keys and, for an existing etcd or
registry, files below the working directory. Of the environment it reads KUBEXM_… only. It does not specify which host keys are trusted. Before the first
connection to its hosts from this workdir the command asks for confirmation; --yes confirms.`,
		Example: `  kubexm install demo.tar.zst --key cosign.pub -f config.yaml --dry-run
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml
  kubexm install demo.tar.zst --key cosign.pub --yes    # its own config
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml \
    --skip-checks memory
  kubexm install delta.tar.zst --key cosign.pub -f config.yaml \
    --base demo.tar.zst`,
		Bundle: plan.BundleNeeded, WritesRecord: true,
		Modules: []plan.Module{
			module.Preflight(), module.Cluster(), module.Finish(),
		},
	}
}
