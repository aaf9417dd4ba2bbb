// Package runner owns what can be done on one host: files, units, kernel
// settings, users, long jobs, facts. A Runner works over any connector.Conn and
// is the only way that steps touch a host.
//
// Each of its methods is one command, most often a small shell script. The
// scripts are the constants of the files named script_*.go; there is no other
// shell text in this module, and nothing is ever put into one: arguments are
// arguments. A file is always written beside its place and renamed, so that a
// host that loses power holds the old file or the new one.
//
// A connector.Verb goes with each command. The suite in runnertest holds the
// scripts, and the simulated host that knows only the verbs, to the same
// behaviour, over every wire.
//
// Errors: what is not there is fs.ErrNotExist, a command that ended with another
// status than 0 a *CmdError; what the connection says (connector's errors) passes
// through as it is. Text from the host is redacted before it gets into an error
// or a log; results are not.
//
// It may import connector, manifest.
package runner
