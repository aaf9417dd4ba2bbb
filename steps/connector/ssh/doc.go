// Package ssh owns the wire to a machine of the cluster: one SSH connection per
// host with many channels, made when it is needed and made again after it broke.
//
//	New(config)        nothing happens yet
//	Exec               dial (through the jump host's own Conn, if there is one),
//	                   check the host key, log in; then a channel per command
//	a silent peer      keepalives go out; after DeadAfter without a single byte
//	                   from there the connection is closed, and with it every
//	                   command on it (*connector.BrokenError)
//	too many channels  commands wait for each other: MaxSessions, and less where
//	                   the server takes less
//
// Host keys are checked on every machine of the way, with knownhosts; there is
// no way to leave that out. Secrets reach this package revealed and leave it
// only into the protocol: errors and logs hold none.
//
// It may import connector and manifest.
package ssh
