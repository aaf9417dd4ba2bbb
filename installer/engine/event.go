package engine

import (
	"cmp"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Outcome is how a step ended on a host, or what became of it before.
type Outcome string

// The outcomes.
const (
	Started     Outcome = "started"
	Skipped     Outcome = "already done"
	Ran         Outcome = "ran"
	Looked      Outcome = "checked"   // by a step that only looks, and found all well
	Would       Outcome = "would run" // in a dry run
	Resumed     Outcome = "resumed"   // an earlier run saw it done: not looked at
	Retried     Outcome = "tried again"
	Failed      Outcome = "failed"
	RollingBack Outcome = "rolling back" // what it did before is about to be undone
	RolledBack  Outcome = "rolled back"
	Kept        Outcome = "kept" // the rollback of its task ends here: it cannot be undone
	Interrupted Outcome = "interrupted"
	Found       Outcome = "found"   // a finding, while the step goes on
	Waits       Outcome = "waiting" // it goes on, and says what for
)

// Event is one thing that happened. Events are delivered one at a time, in
// the order in which they happened.
type Event struct {
	Time    time.Time     `json:"time"`
	Module  string        `json:"module"`
	Task    string        `json:"task"` // module/task
	Node    string        `json:"node"` // the id in the plan
	Step    string        `json:"step"`
	Host    string        `json:"host"`
	As      string        `json:"as,omitempty"` // the host's name in the plan, where that is another: the lead's
	Outcome Outcome       `json:"outcome"`
	Took    time.Duration `json:"took,omitempty"` // nanoseconds
	Changes []string      `json:"changes,omitempty"`
	Err     error         `json:"-"`
	Error   string        `json:"error,omitempty"`
	// Finding is what a step reports that lets it pass; of a Found event, and of no other.
	Finding *steps.Finding `json:"finding,omitempty"`
	// For is what a step waits for, or why it is kept; of a Waits and a Kept event, and of no
	// other.
	For string `json:"for,omitempty"`
}

// At is the host's name in the plan.
func (e Event) At() string { return cmp.Or(e.As, e.Host) }
