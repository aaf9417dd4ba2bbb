package plan

import "time"

// Drain is how the nodes of a change are drained.
type Drain struct {
	// Requested drains the nodes of a pipeline that drains them only on request. A pipeline that
	// always drains nodes ignores it.
	Requested bool
	Timeout   time.Duration // for the evictions of one node; 0 means 10 minutes
	// Force deletes pods that are left after Timeout, and pods without a controller.
	Force bool
}

// DrainUse is whether a pipeline drains nodes.
type DrainUse int

// The kinds of DrainUse.
const (
	NoDrain        DrainUse = iota
	DrainOnRequest          // if Drain.Requested is set
	DrainAlways
)
