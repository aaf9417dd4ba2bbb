// Package built provides the programs of this checkout that tests share: build/kubexm, which
// `make build` writes, and build/brittle, the simulated disk of testdata/faults.
//
// Go's test cache does not record what a test runs as another process. It would report
// "(cached)" for a test whose program has changed. So each function reads all folders that the
// program is built from: the names, sizes and modification times of their files become inputs
// of every test that calls it. Importing the packages is not enough: the linker omits what a
// test does not call, and Go's cache compares the linked program.
package built
