// Package ssh is the transport to a host over SSH: one connection per host with many
// channels, established on first use and re-established after it broke.
//
//	New(config)        does not connect yet
//	Exec               connects (through the Conn of the jump host, if there is one),
//	                   verifies the host key and logs in; then opens one channel
//	                   per command
//	a silent peer      keepalives are sent; after DeadAfter without any received byte
//	                   the connection is closed, and with it every command on it
//	                   (*connector.BrokenError)
//	too many channels  commands queue: at most MaxSessions run in parallel, or fewer
//	                   if the server accepts fewer
//
// Host keys are verified on every machine on the way, with knownhosts. This cannot be
// disabled. Secrets are passed to this package in clear text; errors and logs contain
// none.
//
// It may import connector and manifest.
package ssh
