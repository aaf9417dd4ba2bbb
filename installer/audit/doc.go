// Package audit owns the log of everything that runs did on hosts: audit.jsonl in the
// cluster's folder, one line of JSON for each command, file and connection on each host. Lines
// are only appended. Each line contains the SHA-256 of the previous one, so that no line in
// the middle can be changed, moved or removed without detection. A cut-off end is detected if
// a later head was recorded elsewhere (in the journal of a run, or in a receipt).
//
// Log appends lines. Conn, a wrapper around a host's connector.Conn, is the only source of
// lines about hosts. Verify reads a log and reports breaks of the chain. docs/audit.md
// describes the fields of a line.
//
// It may import steps, steps/connector and durable.
package audit
