// Package conntest contains fake connections for tests.
//
// Sim is a simulated host in memory, with files, folders, links, systemd units, kernel
// settings and modules, users, packages and jobs. It implements the verbs of package
// connector and interprets no shell. A test must provide a handler for any other program,
// or it fails. Snapshot compares two states of a Sim, Break breaks the connection at the
// n-th command, and Crash simulates a power failure.
//
// Record writes the results of commands on a real host to a txtar archive. Replay returns
// them again, in the same order, and fails the test for any other command.
//
// It may import connector.
package conntest
