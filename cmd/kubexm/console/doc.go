// Package console shows people and programs what commands do: a screen with a live frame,
// progress, tables, findings and failures, documents and lines of JSON. It knows no
// command, and no exit code.
package console
