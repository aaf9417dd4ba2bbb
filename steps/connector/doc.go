// Package connector owns the wire to one host: Conn, one method that runs one
// command, and what every wire shares: how an argv becomes a shell line (Quote),
// how a secret is kept out of what people read (Redactor), how a command becomes
// root's (Sudo), how much output is kept (Tail, Head), and the errors that tell
// a person what to do.
//
// The wires are in folders of their own: ssh for a machine of the cluster, local
// for this one. conntest holds the fakes (a simulated host, a recorder and a
// replayer), sshtest an SSH server for tests.
//
// Files travel on the standard input of a command; no wire knows SFTP. Which
// commands there are is runner's business: a wire sees argv, and a Verb that
// says what was meant.
//
// It may import manifest.
package connector
