// Package steptest owns the laws that every step keeps, one set per kind, and
// what it takes to run a step in a test: a host in memory, a cluster, artifacts.
//
// A law begins at a host as it was before kubexm, takes the step there and back,
// also with the wire broken at every single command, and compares whole hosts.
//
// It may import steps, steps/op, steps/runner, steps/connector and conntest, and manifest.
package steptest
