// Command testall runs everything there is to run: the parts of parts.yaml, which
// take hours together, and every scenario of testdata/e2e/scenarios.yaml.
//
// A part that passed is not run again on the same tree: build/test-all.jsonl holds
// what came of each. A part that fails does not keep the others from running. At the
// end there is a table, and the exit code tells whether all passed.
//
// It knows nothing of kubexm: a part is a shell command. It imports nothing of it.
package main
