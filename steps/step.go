package steps

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// Verdict is what a Precheck finds.
type Verdict int

const (
	// Todo is the zero value: when in doubt, run.
	Todo Verdict = iota
	// Done says that the host is in the state the step wants.
	Done
)

// Risk says what a step may cost the people who use the cluster. A plan shows it, and a
// person confirms one that Destroys: plan.Pipeline.Question.
type Risk int

const (
	// Safe disturbs nothing that runs.
	Safe Risk = iota
	// Disruptive restarts something or moves pods.
	Disruptive
	// Destroys deletes data that cannot be had back.
	Destroys
)

// String gives the risk's word.
func (r Risk) String() string { return [...]string{"safe", "disruptive", "destroys"}[r] }

// Retry says how often a failed Run is tried again.
type Retry struct {
	Times int           // further tries after the first
	Wait  time.Duration // before each
}

// Step is one small thing done to one host. It is idempotent: Precheck looks
// before Run acts, and the engine looks again afterwards.
type Step interface {
	// Meta is data, known before anything runs.
	Meta() Meta
	// Precheck reads only.
	Precheck(context.Context, *Host) (Verdict, error)
	// Run brings the host into the wanted state. It is called when Precheck says
	// Todo, and when a declared output has not been given yet.
	Run(context.Context, *Host) error
	// Rollback undoes a Run, as far as it came, also one that has ended well; best effort.
	// OneWay and Final in Meta say otherwise. It is called within the run that acted.
	Rollback(context.Context, *Host) error
}

// Differ is what a step offers that can say what it would change: dry runs ask
// for it.
type Differ interface {
	Diff(context.Context, *Host) ([]string, error)
}

// Lister is what a step offers whose work is a list of pieces of a host's state: it
// names them, in the order in which they are brought about.
type Lister interface {
	Resources(*Host) []string
}

// Meta is what is known of a step before it runs.
type Meta struct {
	Name    string          // "etcd.install": domain.verb-object, unique, shown everywhere
	Needs   []manifest.Need // artifacts it opens; opening another is an error
	Reads   []AnyKey        // outputs it uses
	Writes  []AnyKey        // outputs it gives
	Timeout time.Duration   // of one try; 0 is the engine's default
	Retry   Retry
	OneWay  bool // cannot be undone: no rollback calls it, and that of its task ends there
	Final   bool // cannot be undone once it has ended well: then the rollback of its task ends there
	Always  bool // nothing to observe (wait, restart): no check after Run
	Upload  bool // moves much data: counts against the limit for uploads
	Risk    Risk
	// Here says that what it brings about lies on the machine kubexm runs on alone: it is
	// no part of the cluster's state.
	Here bool

	// LooksOnly says that neither Precheck nor Run changes anything on the host or
	// here: a check, or a wait. The laws hold a step to it; the engine counts such
	// steps apart, undoes nothing of them, and lets one look on when another has
	// found something.
	LooksOnly bool
}
