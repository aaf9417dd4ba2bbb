// Package task says which steps, where, in what order. A task holds no business
// logic: that is the steps', and the generic half of a step is out of its reach.
//
// It may import installer/plan, steps/<domain> and manifest.
package task
