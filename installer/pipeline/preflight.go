package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Preflight runs the same checks of hosts as the start of an installation. The command appends
// the names of the checks to Long.
func Preflight() plan.Pipeline {
	return plan.Pipeline{
		Name: "preflight", Command: []string{"preflight"},
		Short: "Check hosts before an installation",
		Long: `Connect to every host of a config, check all of them, and report all findings in one table. Errors
prevent install from changing anything; warnings and notes do not. preflight changes nothing on any
host. install runs the same checks before it begins.

Specify --bundle to run all checks: without it the amount of data to be written is not known.

--skip-checks skips checks, by their names in the table. docs/reference/preflight.md lists them with their limits.
Three checks cannot be skipped: that a host can be reached, that the user can become root on it, and that
an existing cluster is not harmed (docs/existing-cluster.md). Checks:`,
		Example: `  kubexm preflight -f config.yaml
  kubexm preflight -f config.yaml --bundle demo.tar.zst --key cosign.pub
  kubexm preflight -f config.yaml --skip-checks memory,clock
  kubexm preflight -f config.yaml -o json | jq .type`,
		Bundle: plan.BundleOptional, ReadOnly: true,
		Modules: []plan.Module{module.Preflight()},
	}
}
