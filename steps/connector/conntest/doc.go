// Package conntest owns the fakes of a connection, for tests.
//
// Sim is a host in memory: files with mode and owner, folders, links, systemd
// units, kernel settings and modules, users, packages, jobs. It knows the verbs
// of connector and nothing of shell; any other program has to be scripted, or the
// test fails. A Snapshot tells whether two states of it are the same, Break breaks
// the wire at the n-th command, and Crash takes the host's power away.
//
// Record writes what a real host answers into a txtar archive; Replay gives those
// answers again, strictly and in order.
//
// It may import connector.
package conntest
