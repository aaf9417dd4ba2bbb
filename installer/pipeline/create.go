package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Create makes a cluster. Where a step fails, that step is undone on that host and
// no other: nine workers that have joined are not taken back because the tenth has
// not, and the next run goes on from there.
func Create() plan.Pipeline {
	return plan.Pipeline{
		Name: "create", Command: []string{"install"}, Args: plan.Archive,
		Short: "Make the cluster that a bundle is for",
		Long: `Verify a bundle, reach every host, look at all of them, and make the cluster: the
runtime, the images straight from the archive, the control plane, the pod network, the
workers, until all is Ready. Each node is sent the images; where the config has a
registry, that is filled, and nodes pull from it. It runs on a machine that is no member of the
cluster, over SSH. No packet leaves the site.

Run it again at any time: what is done is passed over. Ctrl-C once lets running steps
end, twice breaks them off. On a terminal a live view tells what runs where; --plain
and pipes get lines; --progress chooses. With -o json each event is one JSON object on a line of standard output,
and the last line is the summary.

A delta ("kubexm bundle build --since") is installed as a whole bundle is. What it leaves out comes
from the archives that --base names, from those that earlier runs here used and that still lie
where they did, and what is a layer of an image from the site's registry. When something is in none
of them, it is named and nothing is changed.

Before anything is changed, all hosts are looked at as "kubexm preflight" does it. --skip-checks
leaves checks out; which ones is said, and stands in the run's journal.

A cluster that was finished keeps its versions, its hosts and what was decided when it was made: a config
or a bundle with others is refused with exit code 3, and names each difference. New hosts join. A first
master whose machine was replaced is refused, too. docs/existing-cluster.md lists the fields.

A host that does not answer ends the command before anything changes. On a cluster that was finished
--skip-host NAME goes on without it, also where it is the first master: the host is not called, the
command says what is undone there, and the cluster's record names it. docs/hosts-down.md tells which hosts are needed.

--resume does not even look at what the last run saw done, which spares the time that looking
takes. It goes by the journal of that run, and only where config, bundle and kubexm are the same,
on hosts that have not booted since and that no other run has changed.

A step that fails on a host is undone there, and what was done before stays. --rollback task undoes all
that this run did there in the same task, up to a step that cannot be undone. docs/faults.md tells more.

The config is the bundle's own unless -f gives another. Secrets are not in a bundle: give
them in -f, or in the environment variables that the command names when they are missing.

The bundle's own config reads no files of this machine but SSH's default keys, no environment
variables but KUBEXM_…, and does not say which host keys are trusted. Before the first connection
to its hosts from this workdir the command asks; --yes answers.`,
		Example: `  kubexm install demo.tar.zst --key cosign.pub -f config.yaml --dry-run
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml
  kubexm install demo.tar.zst --key cosign.pub --yes    # its own config
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml \
    --skip-checks memory
  kubexm install delta.tar.zst --key cosign.pub -f config.yaml \
    --base demo.tar.zst`,
		Bundle: plan.BundleNeeded, Keeps: true,
		Modules: []plan.Module{
			module.Preflight(), module.Foundation(), module.ControlPlane(), module.Nodes(), module.Finish(),
		},
	}
}
