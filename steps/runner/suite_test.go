package runner_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/runner/runnertest"
)

// TestSuite runs the suite on the simulated host and on a shell.
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

var (
	onHost  = flag.String("host", "", "run the suite on this machine too, user@address:port; it is the test's to do with as it likes")
	withKey = flag.String("key", "", "the private key that logs in to -host")
	systemd = flag.Bool("systemd", false, "-host runs systemd: make units and users there")
)

// TestSuiteOnHost runs the suite on a real host, if the flag -host names one.
func TestSuiteOnHost(t *testing.T) {
	user, addr, ok := strings.Cut(*onHost, "@")
	if !ok {
		t.Skip("no -host user@address:port")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(*withKey)
	if err != nil {
		t.Fatal(err)
	}
	conn := ssh.New(ssh.Config{
		Address: host, Port: number, User: user, Key: key, KeyPath: *withKey, SudoPassword: os.Getenv("KUBEXM_TEST_SUDO"),
		Policy: ssh.AcceptNew, Record: filepath.Join(t.TempDir(), "known_hosts"),
	})
	t.Cleanup(func() { conn.Close() })
	r := runner.New(conn, runner.Options{})
	runnertest.Suite(t, func(t *testing.T) runnertest.Host {
		dir := fmt.Sprintf("/var/tmp/kubexm-suite-%d", time.Now().UnixNano())
		if _, err := r.Mkdir(t.Context(), dir, runner.Attr{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.RemoveAll(context.Background(), dir); err != nil {
				t.Error(err)
			}
		})
		return runnertest.Host{Conn: conn, Dir: dir, Root: true, Systemd: *systemd}
	})
}
