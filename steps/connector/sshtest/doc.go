// Package sshtest contains an SSH server for tests, which runs in the test's process and
// listens on the loopback address. It runs commands with /bin/sh in a folder of the test,
// or passes them to a function. It supports passwords, keyboard-interactive, public keys,
// and TCP forwarding in both directions. It can drop connections, stop responding, and
// limit the number of sessions.
//
// It imports no other folder.
package sshtest
