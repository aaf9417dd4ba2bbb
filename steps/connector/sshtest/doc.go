// Package sshtest owns an SSH server for tests, in the test's own process and on
// loopback. Commands run through /bin/sh in a folder of the test's, or are handed
// to a function; passwords, keyboard-interactive and keys let a client in; TCP is
// forwarded both ways. It can drop connections, go silent, and take only so many
// sessions.
//
// It imports no other folder.
package sshtest
