// Package engine walks a plan's graph: what runs at once, how long it may take,
// how often it is tried, what is undone after a failure, and what is reported.
// It knows steps by their contract alone.
//
// It may import installer/plan, steps and manifest.
package engine
