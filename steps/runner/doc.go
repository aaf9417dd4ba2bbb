// Package runner performs operations on one host: it manages files, systemd units, kernel
// settings, users, packages and long-running jobs, and collects facts. A Runner works over
// any connector.Conn and is the only access that steps have to a host.
//
// Each method runs one command, usually a small shell script. The scripts are the
// constants in the files script_*.go. No other shell text exists in this module, and
// no value is ever inserted into one: values are passed as arguments. Files are written
// to a temporary name and renamed, so that after a power failure the host has either the
// old or the new file.
//
// Each command has a connector.Verb. A simulated host knows only the verbs. The test suite
// in package runnertest runs against the scripts and against the simulated host, over
// every transport, and requires the same behaviour of them.
//
// Errors: fs.ErrNotExist means that the requested object does not exist. A *CmdError means
// that a command ended with another exit status than 0. Errors of the connection
// (package connector) are returned unchanged. Text from the host is redacted in errors
// and logs; results are not redacted.
//
// It may import connector, manifest.
package runner
