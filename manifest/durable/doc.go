// Package durable writes files atomically: a file has its old or its new content, even after a
// kill, a full disk or a loss of power. It writes a temporary file in the same folder, syncs and
// closes it, checks all errors, and renames it. Then it syncs the folder, because the new name
// is not durable before that.
//
// It is not for files that are appended to, or for streams that are too large for memory. It
// imports no other package of kubexm.
package durable
