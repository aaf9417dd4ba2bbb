package steps

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// Verdict is the result of a Precheck.
type Verdict int

const (
	// Todo means that the step has to run. It is the zero value.
	Todo Verdict = iota
	// Done means that the host already has the desired state.
	Done
)

// Risk is the effect of a step on running workloads and on data. Plans show it. A plan
// with a step that Destroys requires confirmation: plan.Pipeline.ConfirmationFor.
type Risk int

const (
	// Safe does not interrupt anything that runs.
	Safe Risk = iota
	// Disruptive restarts something or moves pods.
	Disruptive
	// Destroys deletes data that cannot be recovered.
	Destroys
)

// String returns "safe", "disruptive" or "destroys".
func (r Risk) String() string { return [...]string{"safe", "disruptive", "destroys"}[r] }

// Retry sets how often a failed Run is repeated.
type Retry struct {
	Times int           // retries after the first attempt
	Wait  time.Duration // before each
}

// Step is one change of one host. It is idempotent: the engine calls Precheck before Run
// and again afterwards.
type Step interface {
	// Meta returns the step's static description. It needs no host.
	Meta() Meta
	// Precheck reports whether the host already has the desired state. It must not
	// change anything.
	Precheck(context.Context, *Host) (Verdict, error)
	// Run brings the host into the desired state. The engine calls it if Precheck returns
	// Todo, or if a declared output has not been set yet.
	Run(context.Context, *Host) error
	// Rollback undoes a Run that failed at any point or succeeded, as far as possible.
	// OneWay and Final in Meta exclude it. The engine calls it only in the run that called
	// Run.
	Rollback(context.Context, *Host) error
}

// Differ is implemented by steps that can list what Run would change. Dry runs use it.
type Differ interface {
	Diff(context.Context, *Host) ([]string, error)
}

// Lister is implemented by steps that consist of resources. Resources returns their
// names in the order in which Run applies them.
type Lister interface {
	Resources(*Host) []string
}

// Meta describes a step before it runs.
type Meta struct {
	Name    string          // "etcd.install": domain.verb-object, unique, shown everywhere
	Needs   []manifest.Need // artifacts that it opens; opening any other is an error
	Reads   []AnyKey        // outputs that it reads
	Writes  []AnyKey        // outputs that it sets
	Timeout time.Duration   // of one attempt; 0 means the engine's default
	Retry   Retry
	OneWay  bool // cannot be undone: the rollback of its task stops at it
	Final   bool // cannot be undone after it succeeded: the rollback of its task then stops at it
	Always  bool // has no observable result (wait, restart): no Precheck after Run
	Upload  bool // transfers large files: counts against the limit of parallel uploads
	Risk    Risk
	// WorkdirOnly means that the step's result exists only on the workdir host and is not part
	// of the cluster's state.
	WorkdirOnly bool

	// ReadOnly means that neither Precheck nor Run changes anything on the host or the
	// workdir host: a check, or a wait. The conformance tests verify it. The engine counts
	// such steps separately and never rolls them back. It lets them continue after another
	// one has found a problem.
	ReadOnly bool
}
