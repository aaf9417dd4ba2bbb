package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// SSH is a command that runs script on h, from the workdir host; without a script it
// is a shell. The user is RootUser or SudoUser. Commands share a connection, which ends
// by itself soon after the last of them.
//
// It comes from Asker's address, by which a host's log tells it from what is run on the
// workdir host.
func (l *Lab) SSH(ctx context.Context, h *Host, user string, script ...string) *exec.Cmd {
	socket := ""
	if len(script) > 0 {
		socket = l.connected(ctx, h, user)
	}
	return l.ssh(ctx, h, user, socket, script...)
}

// Asker is the address that SSH comes from.
func (l *Lab) Asker() string { return l.address(askerNumber) }

// ssh is a command over the connection that has a socket; over one of its own, where
// there is none.
func (l *Lab) ssh(ctx context.Context, h *Host, user, socket string, script ...string) *exec.Cmd {
	args := l.sshArgs(h, user)
	if socket != "" {
		args = append([]string{"-o", "ControlPath=" + socket}, args...)
	}
	return l.Workdir().Command(ctx, "ssh", append(args, script...)...)
}

func (l *Lab) sshArgs(h *Host, user string) []string {
	return []string{
		"-i", l.Key(), "-o", "UserKnownHostsFile=" + l.KnownHosts(), "-o", "StrictHostKeyChecking=yes", "-F", "none", "-b", l.Asker(),
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=" + strconv.Itoa(h.slowness()*4), "-o", "LogLevel=ERROR", user + "@" + h.Address,
	}
}

// masters are the connections that commands share, by the sockets of their processes.
type masters struct {
	mu   sync.Mutex
	each map[string]*sync.Mutex
}

// of gives the lock of one socket.
func (m *masters) of(socket string) *sync.Mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.each == nil {
		m.each = map[string]*sync.Mutex{}
	}
	if m.each[socket] == nil {
		m.each[socket] = &sync.Mutex{}
	}
	return m.each[socket]
}

// longest is how long the path of a socket may be; ssh adds some letters of its own
// to the kernel's 107.
const longest = 80

func (l *Lab) socket(h *Host, user string) string {
	return filepath.Join(l.Dir, "mux", h.Name+"."+user)
}

// connected gives the socket of a connection to h, and makes one where there is none.
// It is made before the command that asks for it: of two that both made it, one would
// complain of the other. Without one, "": the command says why by itself.
func (l *Lab) connected(ctx context.Context, h *Host, user string) string {
	socket := l.socket(h, user)
	if len(socket) > longest {
		return ""
	}
	one := l.masters.of(socket)
	one.Lock()
	defer one.Unlock()
	if _, err := l.master(ctx, "check", socket); err == nil {
		return socket
	}
	_ = os.Remove(socket) // of one that was killed
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return ""
	}
	args := append([]string{
		"-f", "-N", "-M", "-o", "ControlPath=" + socket, "-o", "ControlPersist=20",
		"-o", "ServerAliveInterval=" + strconv.Itoa(h.slowness()*2), "-o", "ServerAliveCountMax=2",
	}, l.sshArgs(h, user)...)
	if err := l.Workdir().Command(ctx, "ssh", args...).Run(); err != nil {
		return ""
	}
	return socket
}

// master tells the process of a connection something, and gives its id.
func (l *Lab) master(ctx context.Context, what, socket string) (id int, err error) {
	if _, err := os.Stat(socket); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ssh", "-F", "none", "-O", what, "-S", socket, "lab").CombinedOutput()
	if found := masterID.FindSubmatch(out); found != nil {
		id, _ = strconv.Atoi(string(found[1])) // it is digits
	}
	return id, err
}

var masterID = regexp.MustCompile(`pid=(\d+)`)

// hangUp ends the connections to a host, and returns when their processes are gone. It
// goes on after an interrupt: they would be left behind.
func (l *Lab) hangUp(ctx context.Context, h *Host) {
	ctx = context.WithoutCancel(ctx)
	for _, user := range []string{RootUser, SudoUser} {
		l.hangUpSocket(ctx, l.socket(h, user))
	}
}

func (l *Lab) hangUpSocket(ctx context.Context, socket string) {
	one := l.masters.of(socket)
	one.Lock()
	defer one.Unlock()
	id, err := l.master(ctx, "check", socket)
	if err != nil {
		_ = os.Remove(socket) // one that does not answer ends when its host does not
		return
	}
	p := Process{ID: id}
	if p.Began, err = began(id); err != nil {
		return
	}
	_, _ = l.master(ctx, "exit", socket)
	_ = p.end(syscall.SIGTERM)
	_ = os.Remove(socket)
}
