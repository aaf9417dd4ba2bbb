package ssh_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// TestForwardedConnectionsHaveDeadlines: net/http's server interrupts a read by a
// deadline, where a client has sent its next requests before it got the first answer.
// apt does that, and waited for a minute each time.
func TestForwardedConnectionsHaveDeadlines(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	l, err := open(t, config(t, s)).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() { web.Close() })

	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	const requests = 5
	var all strings.Builder
	for i := range requests {
		fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
	}
	if _, err := c.Write([]byte(all.String())); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for i := range requests {
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body := make([]byte, 2)
		if n, _ := res.Body.Read(body); string(body[:n]) != fmt.Sprintf("/%d", i) {
			t.Errorf("answer %d is %q", i, body[:n])
		}
		res.Body.Close()
	}

	idle, err := net.Dial("tcp", l.Addr().String()) // which the server's end closes
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	web.Close()
	if err := idle.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := idle.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a connection to a server that has ended reads %d bytes, %v", n, err)
	}
}
