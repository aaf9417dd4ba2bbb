package drivers

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestNamespace dials as from this process's own namespace, which no other is made for.
func TestNamespace(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := Within("/proc/self/ns/net")
	if conn, err := n.Dial(t.Context(), "tcp", l.Addr().String()); errors.Is(err, syscall.EPERM) {
		t.Skip("to enter a namespace takes root")
	} else if err != nil {
		t.Fatal(err)
	} else {
		conn.Close()
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			conn, err := n.Dial(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		})
	}
	all.Wait()
}

// TestNamespaceRefuses: a name would be resolved outside of the namespace, and a
// namespace that is gone is no reason to dial from this one.
func TestNamespaceRefuses(t *testing.T) {
	n := Within("/proc/self/ns/net")
	if _, err := n.Dial(t.Context(), "tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "not an IP address") {
		t.Errorf("a name: %v", err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n = Within(t.TempDir() + "/gone")
	if _, err := n.Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a namespace that is gone: %v", err)
	}
}
