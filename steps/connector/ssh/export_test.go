package ssh

import (
	"net"

	"golang.org/x/crypto/ssh"
)

// CheckHostKey decides on a host key as a connection does.
func CheckHostKey(cfg Config, key ssh.PublicKey) error {
	cfg = cfg.withDefaults()
	k, err := newHostKeys(cfg)
	if err != nil {
		return err
	}
	return k.check(cfg.addr(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 11), Port: cfg.Port}, key)
}
