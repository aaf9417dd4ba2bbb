// Package runnertest owns the one suite that every wire passes: what a Runner
// does over the simulated host, over this machine's shell, and over SSH. A
// simulated host that behaves otherwise than a shell makes every test that
// stands on it worthless; here it would show.
//
// It may import connector, conntest and runner.
package runnertest
