package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner/runnertest"
)

// TestSuite holds the simulated host and the shell to the same behaviour.
func TestSuite(t *testing.T) {
	root := os.Geteuid() == 0
	t.Run("sim", func(t *testing.T) {
		t.Parallel()
		runnertest.Suite(t, func(t *testing.T) runnertest.Host {
			sim := conntest.New(t)
			sim.AddDir("/srv/suite", 0o755)
			return runnertest.Host{Conn: sim, Sim: sim, Dir: "/srv/suite", Root: true}
		})
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		runnertest.Suite(t, func(t *testing.T) runnertest.Host {
			return runnertest.Host{Conn: local.New(local.Config{}), Dir: t.TempDir(), Root: root}
		})
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		server := sshtest.Start(t, sshtest.Config{Password: "secret"})
		runnertest.Suite(t, func(t *testing.T) runnertest.Host {
			conn := ssh.New(ssh.Config{
				Address: server.Host, Port: server.Port, Password: "secret",
				Policy: ssh.AcceptNew, Record: filepath.Join(t.TempDir(), "known_hosts"),
			})
			t.Cleanup(func() { conn.Close() })
			return runnertest.Host{Conn: conn, Dir: t.TempDir(), Root: root}
		})
	})
}
