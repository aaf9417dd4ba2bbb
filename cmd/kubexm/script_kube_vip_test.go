package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// kubeVIP writes CLUSTER.yaml, the config of a cluster of the simulated masters m1 and m2, whose
// API servers are ready: kubevip CLUSTER [stopped]. m1 has the virtual IP and the lease, unless
// kube-vip is stopped.
func kubeVIP(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 && len(args) != 2 {
		ts.Fatalf("usage: kubevip CLUSTER [stopped]")
	}
	stopped := len(args) == 2
	var known, hosts []string
	for i, name := range []string{"m1", "m2"} {
		sim := conntest.New(nil)
		server, err := sshtest.Serve(sshtest.Config{Password: "secret", NoSignals: true, Run: onSim(sim)})
		ts.Check(err)
		ts.Defer(server.Close)
		known = append(known, knownhosts.Line([]string{server.Addr}, server.HostKey()))
		hosts = append(hosts, fmt.Sprintf(`    - {name: %s, address: %s, port: %d, internalAddress: 192.0.2.%d}`, name, server.Host, server.Port, 11+i))
		sim.SetMachine(func(m *conntest.Machine) {
			if m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", 11+i)}; name == "m1" && !stopped {
				m.Addresses = append(m.Addresses, "192.0.2.100/32")
			}
		})
		sim.AddFile("/etc/kubernetes/admin.conf", "the administrator's\n", 0o600)
		sim.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			switch {
			case stopped:
				return connector.Result{Stdout: []byte(`{"items":[]}`)}, true
			case c.Argv[1] == "ps":
				return connector.Result{Stdout: []byte("container\n")}, true
			} // the digest of a kubeconfig that does not exist
			return connector.Result{Stdout: []byte(`{"items":[{"id":"pod","annotations":{"kubexm.mensylisir.io/kubeconfig":"e3b0c44298fc1c14"}}]}`)}, true
		})
		sim.HandleProgram("kubectl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			switch words := strings.Join(c.Argv, " "); {
			case strings.HasSuffix(words, "--raw /readyz"):
				return connector.Result{Stdout: []byte("ok")}, true
			case strings.HasSuffix(words, "leases.coordination.k8s.io plndr-cp-lock") && !stopped:
				return connector.Result{Stdout: []byte(`{"spec":{"holderIdentity":"m1","acquireTime":"2026-03-04T05:06:07.800900Z"}}`)}, true
			}
			return connector.Result{}, true
		})
	}
	text := fmt.Sprintf(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  ssh: {user: root, password: "${env:SSH_PASSWORD}"}
  hosts:
%s
  roleGroups: {master: [m1, m2]}
  controlPlaneEndpoint: {domain: api.site.example, address: 192.0.2.100}
  loadBalancer: {internal: {type: kube-vip}}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`, args[0], strings.Join(hosts, "\n"))
	home := ts.MkAbs("home")
	ts.Setenv("HOME", home)
	ts.Setenv("SSH_PASSWORD", "secret")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(text), 0o600))
	ts.Check(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	ts.Check(os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(strings.Join(known, "\n")+"\n"), 0o600))
}
