package preflight_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const site = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11}
    - {name: w1, address: 192.0.2.21}
    - {name: r1, address: 192.0.2.31}
    - {name: a1, address: 192.0.2.41, arch: arm64}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1, a1], registry: [r1]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

func machine(f func(*conntest.Machine)) func(*conntest.Sim) {
	return func(s *conntest.Sim) { s.SetMachine(f) }
}

func listening(lines ...string) func(*conntest.Sim) {
	return machine(func(m *conntest.Machine) { m.Ports = append(m.Ports, lines...) })
}

func file(path string) func(*conntest.Sim) {
	return func(s *conntest.Sim) { s.AddFile(path, "x", 0o600) }
}

func TestEachFinding(t *testing.T) {
	const apiserver = `tcp LISTEN 0 128 0.0.0.0:6443 0.0.0.0:* users:(("haproxy",pid=7,fd=3))`
	const kubelet = `tcp LISTEN 0 128 [::]:10250 [::]:* users:(("kubelet",pid=8,fd=3))`
	for name, c := range map[string]struct {
		check  func(preflight.Say) steps.Step
		host   string
		before func(*conntest.Sim)
		want   []string // in order
	}{
		"a host as it should be":           {preflight.System, "m1", nil, nil},
		"another architecture":             {preflight.System, "w1", machine(func(m *conntest.Machine) { m.Machine = "aarch64" }), []string{"the architecture is arm64, the config says amd64"}},
		"the architecture of the config":   {preflight.System, "a1", machine(func(m *conntest.Machine) { m.Machine = "aarch64" }), nil},
		"an old kernel":                    {preflight.System, "r1", machine(func(m *conntest.Machine) { m.Kernel = "3.10.0-1160.el7.x86_64" }), []string{"kernel 3.10.0-1160.el7.x86_64 is too old"}},
		"the oldest kernel":                {preflight.System, "w1", machine(func(m *conntest.Machine) { m.Kernel = "4.19.0-rc1" }), nil},
		"a kernel of two numbers":          {preflight.System, "w1", machine(func(m *conntest.Machine) { m.Kernel = "4.18+" }), []string{"kernel 4.18+ is too old"}},
		"a kernel nobody can read":         {preflight.System, "w1", machine(func(m *conntest.Machine) { m.Kernel = "custom" }), nil},
		"a master of one processor":        {preflight.System, "m1", machine(func(m *conntest.Machine) { m.CPUs = 1 }), []string{"has 1 processor"}},
		"a worker of one processor":        {preflight.System, "w1", machine(func(m *conntest.Machine) { m.CPUs = 1 }), nil},
		"a master with little memory":      {preflight.System, "m1", machine(func(m *conntest.Machine) { m.MemoryMiB = 1699 }), []string{"has 1699 MiB of memory"}},
		"a worker with a master's least":   {preflight.System, "w1", machine(func(m *conntest.Machine) { m.MemoryMiB = 1699 }), nil},
		"a worker with little memory":      {preflight.System, "w1", machine(func(m *conntest.Machine) { m.MemoryMiB = 699 }), []string{"has 699 MiB of memory"}},
		"a registry host with little":      {preflight.System, "r1", machine(func(m *conntest.Machine) { m.MemoryMiB, m.CPUs, m.Swap = 512, 1, true }), nil},
		"swap":                             {preflight.System, "w1", machine(func(m *conntest.Machine) { m.Swap = true }), []string{"swap is on (/dev/vdb)"}},
		"everything at once":               {preflight.System, "m1", machine(func(m *conntest.Machine) { m.CPUs, m.MemoryMiB, m.Swap = 1, 512, true }), []string{"has 1 processor", "has 512 MiB of memory", "swap is on (/dev/vdb)"}},
		"no port taken":                    {preflight.Ports, "m1", nil, nil},
		"the API server's port":            {preflight.Ports, "m1", listening(apiserver), []string{"port 6443, which kube-apiserver needs, is taken by haproxy"}},
		"the API server's port, on both":   {preflight.Ports, "m1", listening(apiserver, strings.Replace(apiserver, "0.0.0.0:6443", "[::]:6443", 1)), []string{"port 6443, which kube-apiserver needs, is taken by haproxy"}},
		"the API server's port, elsewhere": {preflight.Ports, "w1", listening(apiserver), nil},
		"the kubelet's port":               {preflight.Ports, "w1", listening(kubelet), []string{"port 10250, which kubelet needs, is taken by kubelet"}},
		"the kubelet's port, by nobody":    {preflight.Ports, "w1", listening("tcp LISTEN 0 128 127.0.0.1:10248 0.0.0.0:*"), []string{"port 10248, which kubelet needs, is taken by something"}},
		"another protocol":                 {preflight.Ports, "m1", listening("udp UNCONN 0 0 0.0.0.0:6443 0.0.0.0:*"), nil},
		"a registry host's":                {preflight.Ports, "r1", listening(apiserver, kubelet), nil},
		"the registry's port":              {preflight.Ports, "r1", listening(`tcp LISTEN 0 128 *:443 *:* users:(("nginx",pid=9,fd=3))`), []string{"port 443, which the registry needs, is taken by nginx"}},
		"ports of this cluster's own": {preflight.Ports, "m1", func(s *conntest.Sim) {
			listening(apiserver, kubelet)(s)
			s.AddDir("/var/lib/kubexm/demo/before", 0o700)
		}, nil},
		"ports of another cluster": {preflight.Ports, "w1", func(s *conntest.Sim) {
			listening(kubelet)(s)
			s.AddDir("/var/lib/kubexm/other/before", 0o700)
		}, []string{"port 10250, which kubelet needs, is taken by kubelet"}},
		"nothing installed":             {preflight.Existing, "m1", nil, nil},
		"a kubelet":                     {preflight.Existing, "w1", file("/etc/kubernetes/kubelet.conf"), []string{"holds another Kubernetes: /etc/kubernetes/kubelet.conf"}},
		"a master and an etcd":          {preflight.Existing, "m1", func(s *conntest.Sim) { file("/etc/kubernetes/admin.conf")(s); s.AddDir("/var/lib/etcd/member", 0o700) }, []string{"holds another Kubernetes: /etc/kubernetes/admin.conf, /var/lib/etcd/member"}},
		"a worker with somebody's etcd": {preflight.Existing, "w1", file("/var/lib/etcd/member/wal"), nil},
		"on a registry host":            {preflight.Existing, "r1", file("/etc/kubernetes/kubelet.conf"), nil},
		"of this cluster's own": {preflight.Existing, "m1", func(s *conntest.Sim) {
			file("/etc/kubernetes/admin.conf")(s)
			s.AddDir("/var/lib/kubexm/demo/before", 0o700)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: c.before}
			for _, h := range kase.Cluster.Spec.Hosts {
				if h.Name == c.host {
					kase.Host = h
				}
			}
			var got []string
			for _, f := range steptest.Check(t, kase, c.check(func(f steps.Finding) { t.Errorf("a warning: %+v", f) })) {
				got = append(got, f.What)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestPortOfTheConfig: without a load balancer the API server listens where the
// config says.
func TestPortOfTheConfig(t *testing.T) {
	c := steptest.Cluster(t, site+"  controlPlaneEndpoint: {port: 7443}\n")
	kase := steptest.Case{Cluster: c, Before: listening("tcp LISTEN 0 128 0.0.0.0:6443 0.0.0.0:*", "tcp LISTEN 0 128 0.0.0.0:7443 0.0.0.0:*")}
	got := steptest.Check(t, kase, preflight.Ports(nil))
	if len(got) != 1 || got[0].What != "port 7443, which kube-apiserver needs, is taken by something" {
		t.Errorf("found %v", got)
	}
}

func TestAnotherInit(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, site)}
	step := preflight.System(nil)
	h := kase.NewHost(t, kase.Sim(t), step)
	h.Facts.Systemd, h.Facts.Init = 0, "runit"
	err := step.Run(t.Context(), h)
	if err == nil || !strings.Contains(err.Error(), "process 1 is runit, not systemd") {
		t.Errorf("%v", err)
	}
}

// TestMembersOfTheStore: an etcd in the way of one of ours is found where one of
// ours is going to be, and nowhere else.
func TestMembersOfTheStore(t *testing.T) {
	there := func(s *conntest.Sim) {
		s.AddFile("/var/lib/etcd/member/wal", "x", 0o600)
		listening(`tcp LISTEN 0 128 *:2379 *:* users:(("etcd",pid=9,fd=3))`)(s)
	}
	for etcd, hosts := range map[string]string{
		"type: kubeadm": "m1", "type: kubexm": "m1", "type: kubexm}\n  roleGroups: {etcd: [r1], master: [m1], worker: [w1, a1], registry: [r1]": "r1",
		"type: external, external: {endpoints: ['http://192.0.2.11:2379']}": "",
	} {
		config := strings.Replace(site, "type: kubeadm", etcd, 1)
		if strings.Contains(etcd, "roleGroups") {
			config = strings.Replace(config, "  roleGroups: {master: [m1], worker: [w1, a1], registry: [r1]}\n", "", 1)
		}
		c := steptest.Cluster(t, config)
		for _, h := range c.Spec.Hosts {
			kase := steptest.Case{Cluster: c, Host: h, Before: there}
			kase.Host.Arch = "amd64"
			found := len(steptest.Check(t, kase, preflight.Existing(nil))) + len(steptest.Check(t, kase, preflight.Ports(nil)))
			if want := 2 * strings.Count(hosts, h.Name); found != want {
				t.Errorf("%s: %d findings on %s, want %d", etcd, found, h.Name, want)
			}
		}
	}
}
