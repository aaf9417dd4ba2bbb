// Package built gives tests the kubexm of this checkout, build/kubexm, which
// `make build` writes and all of them share.
//
// Go's test cache does not know what a test runs as another process, and would
// answer "(cached)" for a test whose program has changed. So Kubexm reads all
// folders that the program is built of: the names, sizes and modification times of
// their files are inputs of every test that calls it. To import the packages is not
// enough: the linker leaves out what a test does not call, and Go's cache compares
// what is linked.
package built
