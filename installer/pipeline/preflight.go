package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Preflight looks at hosts as a creation does first, and does no more. The names of the
// checks follow its Long.
func Preflight() plan.Pipeline {
	return plan.Pipeline{
		Name: "preflight", Command: []string{"preflight"},
		Short: "Look whether hosts are as they have to be",
		Long: `Reach every host of a config, look at all of them, and tell everything that is not as it has to
be, in one table: an error keeps install from changing anything, a warning is passed, a note is said.
Nothing is changed on any host. install makes the very same checks before it begins.

Give --bundle to have everything checked: without it nobody knows how much is going to be written.

--skip-checks leaves checks out, by their names in the table. docs/preflight.md lists them with their limits;
what cannot be left out is that a host is reached, that the user becomes root there, and that a cluster
which exists is not harmed (docs/existing-cluster.md). Checks:`,
		Example: `  kubexm preflight -f config.yaml
  kubexm preflight -f config.yaml --bundle demo.tar.zst --key cosign.pub
  kubexm preflight -f config.yaml --skip-checks memory,clock
  kubexm preflight -f config.yaml -o json | jq .type`,
		Bundle: plan.BundleOptional, Looks: true,
		Modules: []plan.Module{module.Preflight()},
	}
}
