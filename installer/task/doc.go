// Package task selects which steps run where, and in what order. A task contains no business
// logic: that is in the steps. It has no access to the generic half of a step.
//
// It may import installer/plan, steps/<domain> and manifest.
package task
