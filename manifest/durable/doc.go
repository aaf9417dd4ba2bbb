// Package durable puts files under their names whole or not at all, so that what
// stands there outlasts a kill, a full disk and a loss of power. A file is made
// beside its name, in the same folder: exclusively, written, synced, closed with the
// error looked at, and renamed; then the folder is synced, because until then the
// name itself may be lost.
//
// It owns that recipe and nothing else: what the files mean is their owners'
// business, and a stream that is too long to be in one piece in memory, or a file that
// is added to, has its own way. It imports no other package of kubexm.
package durable
