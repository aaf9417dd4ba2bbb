package engine

import (
	"cmp"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Outcome is how a step ended on a host, or a state before its end.
type Outcome string

// The outcomes.
const (
	Started       Outcome = "started"
	Skipped       Outcome = "already done"
	Ran           Outcome = "ran"
	Checked       Outcome = "checked"   // by a step that changes nothing, without findings
	WouldRun      Outcome = "would run" // in a dry run
	Resumed       Outcome = "resumed"   // an earlier run saw it done: not checked again
	Retried       Outcome = "tried again"
	Failed        Outcome = "failed"
	RollingBack   Outcome = "rolling back" // its changes are about to be undone
	RolledBack    Outcome = "rolled back"
	RollbackEnded Outcome = "kept" // the rollback of its task ends here: this step cannot be undone
	Interrupted   Outcome = "interrupted"
	Found         Outcome = "found"   // a finding, while the step goes on
	Waiting       Outcome = "waiting" // the step goes on and reports what it waits for
)

// Event is one event of a run. Events are delivered one at a time, in the order in which they
// happened.
type Event struct {
	Time     time.Time     `json:"time"`
	Module   string        `json:"module"`
	Task     string        `json:"task"` // module/task
	Node     string        `json:"node"` // id in the plan
	Step     string        `json:"step"`
	Host     string        `json:"host"`
	PlanHost string        `json:"as,omitempty"` // the host's name in the plan, if different: the lead's
	Outcome  Outcome       `json:"outcome"`
	Duration time.Duration `json:"took,omitempty"` // nanoseconds
	Changes  []string      `json:"changes,omitempty"`
	Err      error         `json:"-"`
	Error    string        `json:"error,omitempty"`
	// Finding is a finding with which the step still passes; only of Found events.
	Finding *steps.Finding `json:"finding,omitempty"`
	// Reason is what a step waits for, or why it is kept; only of Waiting and Kept events.
	Reason string `json:"for,omitempty"`
}

// At returns the host's name in the plan.
func (e Event) At() string { return cmp.Or(e.PlanHost, e.Host) }
