// Package preflight looks at hosts before anything is changed on them, and
// reports everything it finds at once.
//
// It may import steps, steps/op, versions and manifest.
package preflight
