package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// fleet is the set of hosts that receive files: SSH servers on the loopback address, each in
// its own process, so that the client's memory and CPU are measured separately.
type fleet struct {
	dir     string
	openSSH bool // sshd is the machine's sshd
	hosts   []*sshHost
	link    link
}

// sshHost is one of them.
type sshHost struct {
	address string // of sshd
	through string // the same, through the link that all hosts share
	dir     string // folder for received files
	cmd     *exec.Cmd
	proxy   net.Listener
}

// fleetSize is the number of hosts.
const fleetSize = 4

// The names of the keys in a fleet's folder.
const (
	loginKey = "login"
	hostKey  = "host"
)

// startFleet starts the hosts. Without a usable sshd, this program serves them.
func startFleet(ctx context.Context, self, dir string, stderr io.Writer) (f *fleet, err error) {
	f = &fleet{dir: dir, openSSH: true}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{loginKey, hostKey} {
		if err := writeKey(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	for i := range fleetSize {
		h := &sshHost{dir: filepath.Join(dir, "host"+strconv.Itoa(i+1))}
		if err := os.Mkdir(h.dir, 0o755); err != nil {
			return nil, err
		}
		if f.openSSH {
			if err := h.sshd(ctx, dir); err != nil {
				fmt.Fprintf(stderr, "no sshd of this machine's (%v): hosts are served by x/crypto/ssh\n", err)
				f.openSSH = false
			}
		}
		if !f.openSSH {
			if err := h.own(ctx, self, dir); err != nil {
				return nil, err
			}
		}
		if err := f.share(ctx, h); err != nil {
			return nil, err
		}
		f.hosts = append(f.hosts, h)
	}
	return f, nil
}

// writeKey creates a key pair as ssh-keygen does.
func writeKey(path string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return err
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, pem.EncodeToMemory(block), 0o600), os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer), 0o600))
}

// sshd starts the machine's sshd, with a minimal configuration.
func (h *sshHost) sshd(ctx context.Context, dir string) error {
	path, err := exec.LookPath("sshd")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/sshd")
	}
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.address = l.Addr().String()
	if err := l.Close(); err != nil { // sshd opens the port itself
		return err
	}
	_, port, _ := net.SplitHostPort(h.address)
	config := h.dir + ".conf"
	text := fmt.Sprintf("ListenAddress 127.0.0.1\nPort %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n",
		port, filepath.Join(dir, hostKey), filepath.Join(dir, loginKey+".pub"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	h.cmd = exec.CommandContext(ctx, path, "-D", "-e", "-f", config)
	var said strings.Builder
	h.cmd.Stderr = &said
	if err := h.cmd.Start(); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.address)
		if err == nil {
			return conn.Close()
		}
	}
	_ = h.cmd.Process.Kill() // it may have ended
	_ = h.cmd.Wait()
	return fmt.Errorf("%s does not listen: %s", path, strings.TrimSpace(said.String()))
}

// own starts this program as a host.
func (h *sshHost) own(ctx context.Context, self, dir string) error {
	h.cmd = exec.CommandContext(ctx, self, serveHost, filepath.Join(dir, hostKey), filepath.Join(dir, loginKey+".pub"))
	h.cmd.Stderr = os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	h.address = strings.TrimSpace(line)
	return err
}

// share listens for connections to h through the link that all hosts share.
func (f *fleet) share(ctx context.Context, h *sshHost) (err error) {
	var lc net.ListenConfig
	if h.proxy, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	h.through = h.proxy.Addr().String()
	go func() {
		for {
			from, err := h.proxy.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.address)
			if err != nil {
				_ = from.Close()
				continue
			}
			go f.carry(to, from, true)
			go f.carry(from, to, false)
		}
	}()
	return nil
}

// piece is the number of bytes sent over the link at a time.
const piece = 64 << 10

// carry copies one direction; data for a host uses its share of the link.
func (f *fleet) carry(to, from net.Conn, limited bool) {
	defer to.Close()
	defer from.Close()
	for {
		if limited && f.link.rate.Load() > 0 {
			f.link.take(piece)
		}
		if n, err := io.CopyN(to, from, piece); n == 0 || err != nil { // the kernel copies it
			return
		}
	}
}

// empty deletes the received files.
func (f *fleet) empty() error {
	var errs []error
	for _, h := range f.hosts {
		errs = append(errs, os.RemoveAll(h.dir), os.Mkdir(h.dir, 0o755))
	}
	return errors.Join(errs...)
}

// holds checks the total size of files on each host.
func (f *fleet) holds(want int64) error {
	for _, h := range f.hosts {
		if got := size(h.dir, func(i fs.FileInfo) int64 { return i.Size() }); got != want || want == 0 {
			return fmt.Errorf("%s holds %d bytes, not %d", h.dir, got, want)
		}
	}
	return nil
}

// to returns the hosts as arguments: ADDRESS=FOLDER.
func (f *fleet) to(linked bool) (args []string) {
	for _, h := range f.hosts {
		at := h.address
		if linked {
			at = h.through
		}
		args = append(args, at+"="+h.dir)
	}
	return args
}

func (f *fleet) close() {
	for _, h := range f.hosts {
		if h.proxy != nil {
			_ = h.proxy.Close()
		}
		if h.cmd != nil && h.cmd.Process != nil {
			_ = h.cmd.Process.Kill()
			_ = h.cmd.Wait()
		}
	}
}
