// Package steptest contains the conformance tests for steps, one function per kind of
// step: Ensure, Do, Check, Waits and Again. It also provides what a step requires in a
// test: a simulated host, a simulated cluster, and artifacts.
//
// A conformance test starts with an untouched host. It runs the step and its inverse, also
// with the connection broken at every single command, and compares complete snapshots of
// the host.
//
// It may import steps, steps/op, steps/runner, steps/connector and conntest, and manifest.
package steptest
