// Package audit owns the log of what a run did to hosts: audit.jsonl in the
// cluster's folder, one line of JSON for each command, file and connection on
// each host. Lines are only ever added. Each names the line before by its
// SHA-256, so that none in the middle can be changed, moved or taken out
// unnoticed; that the end was cut off shows where a head was written down
// elsewhere (the journal of a run, a receipt).
//
// Log adds lines, Conn is the one place that they come from: a connector.Conn
// around a host's own. Verify reads a log and finds what was done to it.
// docs/audit.md says what a line holds.
//
// It may import steps, steps/connector and durable.
package audit
