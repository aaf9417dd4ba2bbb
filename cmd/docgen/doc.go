// Command docgen writes what is generated of the program's own text, and is no part of
// the product:
//
//	docgen config: the docstrings of the config's types as Go, so that
//	`kubexm config explain` has them, and the pages docs/config.md and
//	docs/config-not-yet-built.md. `go generate ./manifest` runs it.
//
//	docgen steps: docs/steps.md, the catalogue of steps: what each does, needs and
//	changes, and what undoes it. It reads the plans of testdata/clusters and the
//	comments of the packages under steps. `go generate ./cmd/docgen` runs it.
//
// The files of notes say what undoes a step where the code does not tell, and why a step
// is there; a new step may bring a file of its own.
package main

//go:generate go run . steps -root ../.. -page ../../docs/steps.md
