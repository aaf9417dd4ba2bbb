// Command testall runs all tests: the parts of parts.yaml, which take hours together, and
// every scenario of testdata/e2e/scenarios.yaml.
//
// A part that passed is not run again on the same tree: build/test-all.jsonl has the results.
// A failed part does not prevent the others from running. At the end a table is printed; the
// exit code is 0 if all parts passed.
//
// It knows nothing of kubexm: a part is a shell command. It imports nothing of it.
package main
