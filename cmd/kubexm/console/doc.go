// Package console formats the output of commands, as text and as JSON or YAML: a screen
// with a live view, progress, tables, findings, failures, documents and lines. It has no
// knowledge of commands and exit codes.
package console
