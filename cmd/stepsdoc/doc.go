// Command stepsdoc writes docs/steps.md, the catalogue of steps: what each does,
// needs and changes, what undoes it, and which of the names in the design's five
// documents it answers. It reads the plans of testdata/clusters and the comments of
// the packages under steps. `go generate ./cmd/stepsdoc` runs it; it is no part of
// the product.
//
// asked.yaml answers every name of a step in those documents: with steps, with a
// piece that steps are made of, with what it waits for, or with the reason why
// there is none.
package main

//go:generate go run . -root ../.. -page ../../docs/steps.md
