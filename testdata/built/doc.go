// Package built gives tests the programs of this checkout that they share: build/kubexm,
// which `make build` writes, and build/brittle, the disk of testdata/faults.
//
// Go's test cache does not know what a test runs as another process, and would
// answer "(cached)" for a test whose program has changed. So each function reads all
// folders that the program is built of: the names, sizes and modification times of
// their files are inputs of every test that calls it. To import the packages is not
// enough: the linker leaves out what a test does not call, and Go's cache compares
// what is linked.
package built
