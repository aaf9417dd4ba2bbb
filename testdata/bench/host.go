package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"golang.org/x/crypto/ssh"
)

// beHost is a host for those machines that have no sshd: commands run by sh.
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
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(k.Marshal(), login.Marshal()) {
			return nil, errors.New("refused")
		}
		return nil, nil
	}}
	cfg.AddHostKey(key)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	for {
		raw, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer raw.Close()
			_, chans, reqs, err := ssh.NewServerConn(raw, cfg)
			if err != nil {
				return // the client says so
			}
			go ssh.DiscardRequests(reqs)
			for ch := range chans {
				go serveSession(ctx, ch)
			}
		}()
	}
}

// serveSession runs the one command of a session.
func serveSession(ctx context.Context, nc ssh.NewChannel) {
	if nc.ChannelType() != "session" {
		_ = nc.Reject(ssh.UnknownChannelType, "sessions alone")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for req := range reqs {
		var line struct{ Command string }
		if req.Type != "exec" || ssh.Unmarshal(req.Payload, &line) != nil {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		go ssh.DiscardRequests(reqs)
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(runLine(ctx, ch, line.Command))})) //nolint:gosec // an exit status
		return
	}
}

func runLine(ctx context.Context, ch ssh.Channel, line string) int {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	c.Stdout, c.Stderr = ch, ch.Stderr()
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return 127
	}
	go func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{ch}, make([]byte, 256<<10)) // the command may not want it
		_ = in.Close()
	}()
	_ = c.Wait() // the status says it
	return c.ProcessState.ExitCode()
}
