// Package connector defines Conn, the transport to one host, with one method that runs one
// command. It also contains what all transports share: quoting an argv for a shell
// (Quote), keeping secrets out of output for people (Redactor), running commands as root
// (Sudo), limiting the stored output (Tail, Head), and errors with advice.
//
// The transports are sub-folders: ssh for hosts, local for the workdir host itself.
// conntest contains fakes (a simulated host, a recorder and a replayer), and sshtest an
// SSH server for tests.
//
// Files are transferred through the standard input of a command; no transport uses SFTP.
// Package runner determines the commands: a transport sees only their argv, and a Verb
// that identifies the operation.
//
// It may import manifest.
package connector
