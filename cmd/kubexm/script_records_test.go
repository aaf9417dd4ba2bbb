package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// twoMasters starts the second of two masters of a cluster that was finished, and writes
// CLUSTER.yaml: nothing answers where the first one is. The cluster has a record, and the
// history of a finished creation; with "open" an upgrade is open on it:
// twomasters CLUSTER [open].
func twoMasters(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && args[1] != "open" {
		ts.Fatalf("usage: twomasters CLUSTER [open]")
	}
	sim := conntest.New(nil)
	server, err := sshtest.Serve(sshtest.Config{Password: "secret", NoSignals: true, Run: onSim(sim)})
	ts.Check(err)
	ts.Defer(server.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Check(closed.Close())
	config := func(masters string) string {
		return fmt.Sprintf(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  hosts:
    - {name: m1, address: 127.0.0.1, port: %d, internalAddress: 192.0.2.11, user: root, password: "${env:SSH_PASSWORD}"}
    - {name: m2, address: %s, port: %d, internalAddress: 192.0.2.12, user: root, password: "${env:SSH_PASSWORD}"}
  roleGroups: {master: [%s], worker: [m2]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`, args[0], closed.Addr().(*net.TCPAddr).Port, server.Host, server.Port, masters)
	}
	alone, problems := manifest.Decode(strings.NewReader(config("m2")))
	ts.Check(problems.Err())
	both, problems := manifest.Decode(strings.NewReader(config("m1, m2")))
	ts.Check(problems.Err())
	steptest.ExistingCluster(alone)(sim)
	ts.Check(remember(both, "m2", sim, len(args) == 2))
	home := ts.MkAbs("home")
	ts.Setenv("HOME", home)
	ts.Setenv("SSH_PASSWORD", "secret")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(config("m1, m2")), 0o600))
	ts.Check(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	ts.Check(os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(knownhosts.Line([]string{server.Addr}, server.HostKey())+"\n"), 0o600))
}

// remember leaves on a master of c what the end of a creation leaves there; with open an
// upgrade is open.
func remember(c *manifest.Cluster, master string, sim *conntest.Sim, open bool) error {
	ctx := context.Background()
	public, err := c.Public()
	if err != nil {
		return err
	}
	m, _ := c.Host(master)
	h := &steps.Host{
		Host: m, Runner: runner.New(sim, runner.Options{}), Platform: manifest.Platform{OS: "linux", Arch: "amd64"}, Cluster: c, Log: slog.New(slog.DiscardHandler),
		Applied: func() steps.Applied {
			return steps.Applied{Config: public, Lock: []byte("kind: Lock\n"), Serial: "7", Root: "sha256:r", Set: "v1.34.10", Operation: "op-1", Components: map[string]string{"kubelet": "v1.34.10"}}
		},
	}
	for _, step := range []steps.Step{cluster.WriteRelease(), cluster.Record(), cluster.WriteCopy()} {
		if err := step.Run(ctx, h.WithBoard(&steps.Board{}).ForStep(step.Meta())); err != nil {
			return err
		}
	}
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	o := cluster.Operation{ID: "op-1", Kind: "create", To: "v1.34.10", Who: "root@wd1", Since: began}
	err = cluster.AddHistory(ctx, h, cluster.HistoryEntry{Operation: o, End: began.Add(9 * time.Minute), Took: "9m0s", Outcome: "done", Journal: "2026-03-04T05-06-07"})
	if !open {
		return err
	}
	o = cluster.Operation{ID: "op-2", Kind: "upgrade", From: "v1.34.10", To: "v1.35.0", Who: "anna@wd2", Since: began.Add(time.Hour), State: cluster.OperationOpen}
	return errors.Join(err, cluster.WriteOperation(ctx, h, &o), cluster.SetOperation(ctx, h, &o))
}
