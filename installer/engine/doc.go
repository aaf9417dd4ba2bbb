// Package engine executes a plan's graph: it decides what runs concurrently, sets timeouts,
// retries, undoes after a failure, and reports events. It knows steps only by their interface.
//
// It may import installer/plan, steps and manifest.
package engine
