package runner_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestReach: a refused connection counts as reached, a timeout does not, and a server that
// forbids forwarding leaves the result open.
func TestReach(t *testing.T) {
	listening, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := gone.Addr().String()
	gone.Close()
	over := func(forbidden bool) connector.Conn {
		server := sshtest.Start(t, sshtest.Config{Password: "secret", NoForward: forbidden})
		c := ssh.New(ssh.Config{Address: server.Host, Port: server.Port, Password: "secret", Policy: ssh.AcceptNew, Record: filepath.Join(t.TempDir(), "known_hosts")})
		t.Cleanup(func() { c.Close() })
		return c
	}
	sim := conntest.New(t)
	sim.DropConnectionsTo("192.0.2.7:53")
	sim.DisableDNS("lb.site.example")
	deaf := conntest.New(t)
	deaf.ForbidForwarding()
	for name, c := range map[string]struct {
		conn    connector.Conn
		address string
		want    runner.Reach
		why     error
	}{
		"somebody listens":               {over(false), listening.Addr().String(), runner.Reached, nil},
		"nobody listens":                 {over(false), closed, runner.Reached, runner.ErrRefused},
		"the server forwards nothing":    {over(true), closed, runner.Untested, nil},
		"nothing comes back":             {silent{over(false)}, "192.0.2.7:53", runner.Unreached, nil},
		"nobody listens, simulated":      {sim, "192.0.2.8:53", runner.Reached, runner.ErrRefused},
		"nothing comes back, simulated":  {sim, "192.0.2.7:53", runner.Unreached, nil},
		"a name without an address":      {sim, "lb.site.example:6443", runner.Unreached, runner.ErrNoName},
		"nothing is forwarded, the same": {deaf, "192.0.2.8:53", runner.Untested, nil},
		"a wire of commands alone":       {commands{sim}, closed, runner.Untested, runner.ErrNoTCP},
	} {
		clock := fair.Start()
		got, why := runner.New(c.conn, runner.Options{}).Reach(t.Context(), c.address, 200*time.Millisecond)
		if got != c.want || c.why != nil && !errors.Is(why, c.why) || c.why == nil && (why == nil) != (c.want == runner.Reached) {
			t.Errorf("%s: %d, %v", name, got, why)
		}
		clock.Within(t, 10*time.Second)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, why := runner.New(sim, runner.Options{}).Reach(ended, "192.0.2.7:53", time.Minute); got != runner.Untested || why == nil {
		t.Errorf("given up: %d, %v", got, why)
	}
}

// silent is a Conn whose forwarded connections never get an answer.
type silent struct{ connector.Conn }

func (silent) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Listen(ctx context.Context, _, _ string) (net.Listener, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// commands is a Conn that can only run commands.
type commands struct{ connector.Conn }
