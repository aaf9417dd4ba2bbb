// Package preflight checks hosts before anything is changed on them, and reports all
// findings in one report.
//
// It may import steps, steps/op, versions and manifest.
package preflight
