package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// beHost is a host for those machines that have no sshd: commands run by sh. It
// says where it listens, and serves until ctx ends.
func beHost(ctx context.Context, hostKey, authorized string) error {
	text, err := os.ReadFile(hostKey)
	if err != nil {
		return err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return err
	}
	if text, err = os.ReadFile(authorized); err != nil {
		return err
	}
	login, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return err
	}
	s, err := sshtest.Serve(sshtest.Config{Keys: []ssh.PublicKey{login}, HostKeys: []ssh.Signer{key}}) //nolint:contextcheck // what it serves ends with Close
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.Addr)
	<-ctx.Done()
	return ctx.Err()
}
