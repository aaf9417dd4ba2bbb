// Command docgen writes what is generated of the program's own text, and is no part of
// the product:
//
//	docgen config: the docstrings of the config's types as Go, so that
//	`kubexm config explain` has them, and the pages docs/config.md and
//	docs/config-not-yet-built.md. `go generate ./manifest` runs it.
//
//	docgen steps: docs/steps.md, the catalogue of steps: what each does, needs and
//	changes, what undoes it, and which of the names in the design's five documents
//	it answers. It reads the plans of testdata/clusters and the comments of the
//	packages under steps. `go generate ./cmd/docgen` runs it.
//
// The files of asked answer every name of a step in those documents: with steps, with a
// piece that steps are made of, with what it waits for, or with the reason why
// there is none. They say of other steps what these are for, and what undoes a step that
// the code does not tell; a new step may bring a file of its own.
package main

//go:generate go run . steps -root ../.. -page ../../docs/steps.md
