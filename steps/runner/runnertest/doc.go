// Package runnertest contains the conformance tests for connections: the operations of a
// Runner must have the same results over the simulated host, over a shell on this machine,
// and over SSH. Tests of steps run on the simulated host, and are valid only if it behaves
// as a real shell does.
//
// It may import connector, conntest and runner.
package runnertest
