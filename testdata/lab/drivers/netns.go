package drivers

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Namespace dials as from a network namespace, by the file that names it. The file may
// come to name another one, as a lab's host does that has started again.
//
// A connection belongs to the namespace of the thread that made its socket. Threads are
// kept for a moment: one made for each connection would cost more than the connection.
type Namespace struct {
	path string
	jobs chan job
}

// idle is how long a thread waits for another connection to make.
const idle = 5 * time.Second

type job struct {
	dial  func(*net.Dialer) (net.Conn, error)
	ended chan dialed
}

type dialed struct {
	conn net.Conn
	err  error
}

// Within gives the namespace that a file names, such as /run/netns/NAME.
func Within(path string) *Namespace { return &Namespace{path: path, jobs: make(chan job)} }

// Dial opens a connection to an IP address: a name would be resolved by another thread,
// outside of the namespace.
func (n *Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial %s within %s: not an IP address with a port", address, n.path)
	}
	j := job{ended: make(chan dialed, 1), dial: func(d *net.Dialer) (net.Conn, error) { return d.DialContext(ctx, network, address) }}
	select {
	case n.jobs <- j: // a thread waits for one
	default:
		go n.thread(j)
	}
	d := <-j.ended // dialing hears the context
	return d.conn, d.err
}

// thread makes connections until there are none to make.
func (n *Namespace) thread(j job) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	var in os.FileInfo // the namespace that the thread is in
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		var d dialed
		if in, d.err = n.enter(in); d.err == nil {
			d.conn, d.err = j.dial(dialer)
		}
		j.ended <- d
		timer.Reset(idle)
		select {
		case j = <-n.jobs:
		case <-timer.C:
			return
		}
	}
}

// enter has the thread be in the namespace, and gives what it is in.
func (n *Namespace) enter(in os.FileInfo) (os.FileInfo, error) {
	now, err := os.Stat(n.path)
	if err != nil {
		return in, err
	}
	if in != nil && os.SameFile(in, now) {
		return in, nil
	}
	f, err := os.Open(n.path)
	if err != nil {
		return in, err
	}
	defer f.Close()
	if now, err = f.Stat(); err != nil {
		return in, err
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return in, fmt.Errorf("enter %s: %w", n.path, err)
	}
	return now, nil
}
