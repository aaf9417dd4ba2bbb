package steps

import "context"

// ResourceState is the observed state of one resource: a file, a unit, an object of the
// cluster.
type ResourceState struct {
	Name string // "file /etc/hosts"
	What string // the change that would repair it, "write /etc/hosts"; "" if it has the desired state
	Diff string // added and removed lines, if available
	Err  error  // why it could not be inspected
}

// Drifter is implemented by steps that can inspect each of their resources separately.
// A Differ lists what a run would change, including consequences: a changed file
// restarts its unit. A Drifter lists only what differs: the file.
type Drifter interface {
	Drift(context.Context, *Host) []ResourceState
}
