package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// balanced writes CLUSTER.yaml, the config of a cluster of one master behind the load
// balancer hosts b1 and b2, all simulated. b1 has the virtual IP; haproxy reports the master
// as STATUS, such as UP: balanced CLUSTER TYPE STATUS [both | stopped | fault]. With TYPE haproxy
// or nginx, b1 and b2 are workers with a load balancer of their own instead.
func balanced(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 && len(args) != 4 {
		ts.Fatalf("usage: balanced CLUSTER TYPE STATUS [both | stopped | fault]")
	}
	how := strings.Join(args[3:], "")
	var known, hosts []string
	sims := map[string]*conntest.Sim{}
	for i, name := range []string{"b1", "b2", "m1"} {
		sim := conntest.New(nil)
		server, err := sshtest.Serve(sshtest.Config{Password: "secret", NoSignals: true, Run: onSim(sim)})
		ts.Check(err)
		ts.Defer(server.Close)
		known = append(known, knownhosts.Line([]string{server.Addr}, server.HostKey()))
		hosts = append(hosts, fmt.Sprintf(`    - {name: %s, address: %s, port: %d, internalAddress: 192.0.2.%d}`, name, server.Host, server.Port, 11+i))
		sim.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", 11+i)} })
		sims[name] = sim
	}
	onWorkers := !strings.HasPrefix(args[1], "kubexm-")
	roles := fmt.Sprintf(`  roleGroups: {master: [m1], worker: [m1], loadbalancer: [b1, b2]}
  controlPlaneEndpoint: {domain: api.site.example, address: 192.0.2.100}
  loadBalancer: {external: {type: %s}}`, args[1])
	if onWorkers {
		roles = fmt.Sprintf(`  roleGroups: {master: [m1], worker: [b1, b2]}
  controlPlaneEndpoint: {domain: api.site.example}
  loadBalancer: {internal: {type: %s}}`, args[1])
	}
	text := fmt.Sprintf(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  ssh: {user: root, password: "${env:SSH_PASSWORD}"}
  hosts:
%s
%s
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`, args[0], strings.Join(hosts, "\n"), roles)
	cluster, problems := manifest.Decode(strings.NewReader(text))
	ts.Check(problems.Err())
	alone := cluster.Without([]string{"b1", "b2"})
	steptest.ExistingCluster(alone)(sims["m1"])
	for _, name := range []string{"b1", "b2"} {
		sim := sims[name]
		program := map[string]string{"kubexm-kh": "haproxy", "kubexm-kn": "nginx"}[args[1]]
		for _, unit := range []string{program, "keepalived"} {
			sim.AddUnit(unit+".service", "[Service]\nExecStart=/usr/sbin/"+unit+"\n", unit != "keepalived" || how != "stopped" || name == "b1", true)
		}
		state := "BACKUP"
		switch {
		case how == "fault":
			state = "FAULT"
		case name == "b1" || how == "both":
			state = "MASTER"
			sim.SetMachine(func(m *conntest.Machine) { m.Addresses = append(m.Addresses, "192.0.2.100/32") })
		}
		sim.AddFile("/run/kubexm-endpoint", state+" "+strconv.FormatInt(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Unix(), 10)+"\n", 0o644)
		sim.HandleProgram("bash", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			if c.Argv[len(c.Argv)-1] == "/config/" {
				return connector.Result{Stdout: []byte(map[bool]string{true: "404"}[how != "stopped" || name == "b1"])}, true
			}
			return connector.Result{Stdout: []byte("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\n" +
				"# pxname,svname,status,lastchg,check_status,check_code,last_chk,\n" +
				"api,FRONTEND,OPEN,,,,,\nready,m1," + args[2] + ",61,L7OK,200,\"says \"\"ok\"\"\",\nready,BACKEND,UP,61,,,,\nopen,m1,UP,70,L4OK,,,\n")}, true
		})
	}
	home := ts.MkAbs("home")
	ts.Setenv("HOME", home)
	ts.Setenv("SSH_PASSWORD", "secret")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(text), 0o600))
	ts.Check(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	ts.Check(os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(strings.Join(known, "\n")+"\n"), 0o600))
}
