// Command docgen writes the generated documentation. It is a maintainers' tool and not
// part of the product:
//
//	docgen config: the docstrings of the config's types as Go, for `kubexm config
//	explain`, and the pages docs/reference/config.md and docs/reference/config-not-yet-built.md.
//	`go generate ./manifest` runs it.
//
//	docgen steps: docs/reference/steps.md, the catalogue of steps: what each does, needs and
//	changes, and its undo step. It reads the plans of testdata/clusters and the
//	comments of the packages under steps. `go generate ./cmd/docgen` runs it.
//
// The files in notes list the undo step if the code does not show it, and the reason for
// a step. A new step may add a separate file.
package main

//go:generate go run . steps -root ../.. -page ../../docs/reference/steps.md
