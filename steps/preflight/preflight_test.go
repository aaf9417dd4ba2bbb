package preflight_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
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

// ours has kubexm begun to make the host part of the cluster.
func ours(s *conntest.Sim) {
	sum := sha256.Sum256([]byte("file /usr/local/bin/containerd"))
	s.AddFile("/var/lib/kubexm/demo/before/"+hex.EncodeToString(sum[:12])+".json", "{}", 0o600)
}

// prepared has kubexm made the host ready, and no more.
func prepared(s *conntest.Sim) { s.AddDir("/var/lib/kubexm/demo/before", 0o700) }

func listening(lines ...string) func(*conntest.Sim) {
	return machine(func(m *conntest.Machine) { m.Ports = append(m.Ports, lines...) })
}

func file(path string) func(*conntest.Sim) {
	return func(s *conntest.Sim) { s.AddFile(path, "x", 0o600) }
}

// look finds what one check holds against a host: "level: what".
func look(t *testing.T, c *manifest.Cluster, check, host string, before func(*conntest.Sim)) []string {
	t.Helper()
	kase := steptest.Case{Cluster: c, Before: before}
	for _, h := range c.Spec.Hosts {
		if h.Name == host {
			kase.Host = h
		}
	}
	var got []string
	said := func(f steps.Finding) {
		if f.What == "" || f.Advice == "" || f.Check != check || f.Host != host {
			t.Errorf("a finding names host, check, what and advice: %+v", f)
		}
		got = append(got, f.Level()+": "+f.What)
	}
	kase.Report = said
	for _, f := range steptest.Check(t, kase, step(t, check, preflight.Options{})) {
		got = append(got, f.Level()+": "+f.What)
	}
	return got
}

// step gives the step of a check by its short name.
func step(t *testing.T, check string, o preflight.Options) steps.Step {
	t.Helper()
	for _, c := range preflight.Checks() {
		if c.Name == check {
			return c.Step(o)
		}
	}
	t.Fatalf("there is no check %s", check)
	return nil
}

// row is one state of one host, and what a check finds then.
type row struct {
	host   string
	before func(*conntest.Sim)
	want   []string // in order
	spec   string   // more of the config's spec
}

func hold(t *testing.T, check string, rows map[string]row) {
	t.Helper()
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			config := site + c.spec
			if strings.Contains(c.spec, "  kubernetes: ") {
				config = strings.Replace(config, "  kubernetes: {version: v1.34.10}\n", "", 1)
			}
			got := look(t, steptest.Cluster(t, config), "preflight."+check, c.host, c.before)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestPorts(t *testing.T) {
	const apiserver = `tcp LISTEN 0 128 0.0.0.0:6443 0.0.0.0:* users:(("haproxy",pid=7,fd=3))`
	const kubelet = `tcp LISTEN 0 128 [::]:10250 [::]:* users:(("kubelet",pid=8,fd=3))`
	const cache = "  dns: {nodelocaldns: {enabled: true}}\n"
	hold(t, "ports", map[string]row{
		"none taken":                  {host: "m1"},
		"the API server's":            {host: "m1", before: listening(apiserver), want: []string{"error: port 6443, which kube-apiserver needs, is taken by haproxy (process 7)"}},
		"the API server's, on both":   {host: "m1", before: listening(apiserver, strings.Replace(apiserver, "0.0.0.0:6443", "[::]:6443", 1)), want: []string{"error: port 6443, which kube-apiserver needs, is taken by haproxy (process 7)"}},
		"the config's":                {host: "m1", spec: "  controlPlaneEndpoint: {port: 7443}\n", before: listening("tcp LISTEN 0 128 0.0.0.0:6443 0.0.0.0:*", "tcp LISTEN 0 128 0.0.0.0:7443 0.0.0.0:*"), want: []string{"error: port 7443, which kube-apiserver needs, is taken by an unknown process"}},
		"the API server's, elsewhere": {host: "w1", before: listening(apiserver)},
		"the kubelet's":               {host: "w1", before: listening(kubelet), want: []string{"error: port 10250, which kubelet needs, is taken by kubelet (process 8)"}},
		"the kubelet's, by nobody":    {host: "w1", before: listening("tcp LISTEN 0 128 127.0.0.1:10248 0.0.0.0:*"), want: []string{"error: port 10248, which kubelet needs, is taken by an unknown process"}},
		"another protocol":            {host: "m1", before: listening("udp UNCONN 0 0 0.0.0.0:6443 0.0.0.0:*")},
		"a registry host's":           {host: "r1", before: listening(apiserver, kubelet)},
		"the registry's":              {host: "r1", before: listening(`tcp LISTEN 0 128 *:443 *:* users:(("nginx",pid=9,fd=3))`), want: []string{"error: port 443, which the registry needs, is taken by nginx (process 9)"}},
		"the registry's, for pushing": {host: "r1", before: listening(`tcp LISTEN 0 128 127.0.0.1:5001 *:* users:(("nginx",pid=9,fd=3))`), want: []string{"error: port 5001, which the registry's service for pushes needs, is taken by nginx (process 9)"}},
		"on a host made ready": {host: "w1", before: func(s *conntest.Sim) {
			listening(strings.Replace(kubelet, "kubelet\"", "other\"", 1))(s)
			prepared(s)
		}, want: []string{"error: port 10250, which kubelet needs, is taken by other (process 8)"}},
		"the DNS cache's": {
			host: "w1", spec: cache, before: listening(`udp UNCONN 0 0 0.0.0.0:53 0.0.0.0:* users:(("dnsmasq",pid=9,fd=3))`, `tcp LISTEN 0 128 0.0.0.0:53 0.0.0.0:* users:(("dnsmasq",pid=9,fd=4))`),
			want: []string{"error: port 53 of 169.254.20.10, which the DNS cache needs, is taken by dnsmasq (process 9) on 0.0.0.0"},
		},
		"the DNS cache's, on an address of its own": {host: "w1", spec: cache, before: listening("udp UNCONN 0 0 127.0.0.53:53 0.0.0.0:*", "tcp LISTEN 0 128 192.0.2.21:9253 0.0.0.0:*")},
		"the DNS cache's, on a registry host":       {host: "r1", spec: cache, before: listening("tcp LISTEN 0 128 0.0.0.0:53 0.0.0.0:*")},
		"without a DNS cache":                       {host: "w1", before: listening("tcp LISTEN 0 128 0.0.0.0:53 0.0.0.0:*")},
		"of this cluster's own": {host: "m1", before: func(s *conntest.Sim) {
			listening(apiserver, kubelet)(s)
			ours(s)
		}},
		"of another cluster": {host: "w1", before: func(s *conntest.Sim) {
			listening(kubelet)(s)
			s.AddDir("/var/lib/kubexm/other/before", 0o700)
		}, want: []string{"error: port 10250, which kubelet needs, is taken by kubelet (process 8)"}},
	})
}

func TestExistingInstallation(t *testing.T) {
	hold(t, "existing-installation", map[string]row{
		"nothing":                       {host: "m1"},
		"a kubelet":                     {host: "w1", before: file("/etc/kubernetes/kubelet.conf"), want: []string{"error: has files of another Kubernetes: /etc/kubernetes/kubelet.conf"}},
		"a master and an etcd":          {host: "m1", before: func(s *conntest.Sim) { file("/etc/kubernetes/admin.conf")(s); s.AddDir("/var/lib/etcd/member", 0o700) }, want: []string{"error: has files of another Kubernetes: /etc/kubernetes/admin.conf and /var/lib/etcd/member"}},
		"a worker with somebody's etcd": {host: "w1", before: file("/var/lib/etcd/member/wal")},
		"on a registry host":            {host: "r1", before: file("/etc/kubernetes/kubelet.conf")},
		"of this cluster's own": {host: "m1", before: func(s *conntest.Sim) {
			file("/etc/kubernetes/admin.conf")(s)
			ours(s)
		}},
	})
}

func TestMachines(t *testing.T) {
	m := machine
	hold(t, "operating-system", map[string]row{
		"Debian 12":      {host: "m1"},
		"Rocky 9.4":      {host: "m1", before: m(func(m *conntest.Machine) { m.OSRelease = "ID=\"rocky\"\nVERSION_ID=\"9.4\"\n" })},
		"SLES":           {host: "r1", before: m(func(m *conntest.Machine) { m.OSRelease = "ID=sles\nVERSION_ID=15.5\n" }), want: []string{`error: the operating system "sles 15.5" is not supported`}},
		"another, named": {host: "r1", spec: "  bundle: {operatingSystems: [{name: sles, format: rpm, releases: ['15.5'], repositories: [x.repo]}]}\n", before: m(func(m *conntest.Machine) { m.OSRelease = "ID=sles\nVERSION_ID=15.5\n" }), want: []string{`warning: the operating system "sles 15.5" is not supported, but the config lists it`}},
		"none":           {host: "w1", before: m(func(m *conntest.Machine) { m.OSRelease = "" }), want: []string{"error: /etc/os-release does not name the operating system"}},
	})
	hold(t, "architecture", map[string]row{
		"another":        {host: "w1", before: m(func(m *conntest.Machine) { m.Machine = "aarch64" }), want: []string{"error: the architecture is arm64, but the config has amd64"}},
		"the config's":   {host: "a1", before: m(func(m *conntest.Machine) { m.Machine = "aarch64" })},
		"amd64 on amd64": {host: "w1"},
	})
	hold(t, "processors", map[string]row{
		"a master of one": {host: "m1", before: m(func(m *conntest.Machine) { m.CPUs = 1 }), want: []string{"error: has 1 processor; a master needs at least 2"}},
		"a worker of one": {host: "w1", before: m(func(m *conntest.Machine) { m.CPUs = 1 }), want: []string{"warning: has 1 processor; a worker needs at least 2"}},
		"two":             {host: "m1", before: m(func(m *conntest.Machine) { m.CPUs = 2 })},
	})
	hold(t, "memory", map[string]row{
		"a master under kubeadm's limit": {host: "m1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 1699 }), want: []string{"error: has 1699 MiB of memory; a master needs at least 1700 MiB"}},
		"a master at it":                 {host: "m1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 1700 }), want: []string{"warning: has 1700 MiB of memory; a master should have 3584 MiB"}},
		"a master of 4 GB":               {host: "m1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 3700 })},
		"a worker with little":           {host: "w1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 699 }), want: []string{"error: has 699 MiB of memory; a worker needs at least 700 MiB"}},
		"a worker with more":             {host: "w1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 700 }), want: []string{"warning: has 700 MiB of memory; a worker should have 1792 MiB"}},
		"a worker of 2 GB":               {host: "w1", before: m(func(m *conntest.Machine) { m.MemoryMiB = 1800 })},
	})
	hold(t, "kernel", map[string]row{
		"too old":               {host: "r1", before: m(func(m *conntest.Machine) { m.Kernel = "3.8.0-1" }), want: []string{"error: kernel 3.8.0-1 is too old"}},
		"CentOS 7's":            {host: "r1", before: m(func(m *conntest.Machine) { m.Kernel = "3.10.0-1160.el7.x86_64" }), want: []string{"warning: kernel 3.10.0-1160.el7.x86_64 is older than the kernels that Kubernetes is tested with"}},
		"RHEL 8's":              {host: "w1", before: m(func(m *conntest.Machine) { m.Kernel = "4.18.0-553.el8_10.x86_64" }), want: []string{"warning: kernel 4.18.0-553.el8_10.x86_64 is older than the kernels that Kubernetes is tested with"}},
		"RHEL 8's under 1.32":   {host: "w1", spec: "  kubernetes: {version: v1.32.2}\n", before: m(func(m *conntest.Machine) { m.Kernel = "4.18.0-553.el8_10.x86_64" }), want: []string{"error: kernel 4.18.0-553.el8_10.x86_64 is too old for kubeadm v1.32.2"}},
		"on a registry host":    {host: "r1", spec: "  kubernetes: {version: v1.32.2}\n", before: m(func(m *conntest.Machine) { m.Kernel = "4.18.0" }), want: []string{"warning: kernel 4.18.0 is older than the kernels that Kubernetes is tested with"}},
		"the oldest":            {host: "w1", before: m(func(m *conntest.Machine) { m.Kernel = "4.19.0-rc1" })},
		"of two numbers":        {host: "w1", before: m(func(m *conntest.Machine) { m.Kernel = "4.18+" }), want: []string{"warning: kernel 4.18+ is older than the kernels that Kubernetes is tested with"}},
		"nftables on RHEL 8's":  {host: "w1", spec: "  kubernetes: {version: v1.34.10, kubeProxy: {mode: nftables}}\n", before: m(func(m *conntest.Machine) { m.Kernel = "4.18.0-553.el8_10.x86_64" }), want: []string{"error: kernel 4.18.0-553.el8_10.x86_64 is too old for kube-proxy's mode nftables"}},
		"nftables by default":   {host: "w1", spec: "  kubernetes: {version: v1.35.7}\n", before: m(func(m *conntest.Machine) { m.Kernel = "5.12.0" }), want: []string{"error: kernel 5.12.0 is too old for kube-proxy's mode nftables"}},
		"nftables, new enough":  {host: "w1", spec: "  kubernetes: {version: v1.35.7}\n", before: m(func(m *conntest.Machine) { m.Kernel = "5.13.0" })},
		"nftables, no node":     {host: "r1", spec: "  kubernetes: {version: v1.35.7}\n", before: m(func(m *conntest.Machine) { m.Kernel = "5.12.0" })},
		"one that nobody reads": {host: "w1", before: m(func(m *conntest.Machine) { m.Kernel = "custom" })},
		"newer":                 {host: "w1"},
	})
	old := m(func(m *conntest.Machine) { m.CgroupV2 = false })
	hold(t, "cgroups", map[string]row{
		"version 2":            {host: "w1"},
		"version 1 under 1.30": {host: "w1", before: old, spec: "  kubernetes: {version: v1.30.0}\n"},
		"version 1 under 1.34": {host: "w1", before: old, want: []string{"warning: uses cgroup v1, which is in maintenance mode in Kubernetes v1.34.10"}},
		"version 1 under 1.35": {host: "w1", before: old, spec: "  kubernetes: {version: v1.35.1}\n", want: []string{"warning: uses cgroup v1, which Kubernetes v1.35.1 refuses by default; kubexm sets failCgroupV1: false"}},
	})
}

func TestAnotherInit(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, site)}
	step := step(t, "preflight.operating-system", preflight.Options{})
	h := kase.NewHost(t, kase.Sim(t), step)
	h.Facts.Systemd, h.Facts.Init = 0, "runit"
	err := step.Run(t.Context(), h)
	if err == nil || err.Error() != "process 1 is runit, not systemd" {
		t.Errorf("%v", err)
	}
}

func TestWhatPreparationChanges(t *testing.T) {
	swap := machine(func(m *conntest.Machine) { m.Swap = true })
	hold(t, "swap", map[string]row{
		"off":                   {host: "w1"},
		"on":                    {host: "w1", before: swap, want: []string{"warning: swap is on (/dev/vdb); kubexm turns it off"}},
		"on, to be kept":        {host: "w1", before: swap, spec: "  system: {keep: [swap]}\n", want: []string{"error: swap is on (/dev/vdb), spec.system.keep preserves it, and the kubelet would not start"}},
		"on, kept and accepted": {host: "w1", before: swap, spec: "  system: {keep: [swap]}\n  kubernetes: {version: v1.34.10, kubelet: {extraArgs: {fail-swap-on: false}}}\n"},
	})
	selinux := machine(func(m *conntest.Machine) { m.SELinux = "Enforcing" })
	hold(t, "selinux", map[string]row{
		"none":       {host: "w1"},
		"permissive": {host: "w1", before: machine(func(m *conntest.Machine) { m.SELinux = "Permissive" })},
		"enforcing":  {host: "w1", before: selinux, want: []string{"warning: SELinux is enforcing; kubexm sets it to permissive"}},
		"to be kept": {host: "w1", before: selinux, spec: "  system: {keep: [selinux]}\n", want: []string{"warning: SELinux is enforcing, and spec.system.keep preserves that"}},
	})
	firewall := machine(func(m *conntest.Machine) { m.Firewalls = []string{"firewalld"} })
	hold(t, "firewall", map[string]row{
		"none":       {host: "r1"},
		"active":     {host: "r1", before: firewall, want: []string{"warning: a firewall is active (firewalld); kubexm stops it"}},
		"to be kept": {host: "r1", before: firewall, spec: "  system: {keep: [firewall]}\n", want: []string{"warning: a firewall is active (firewalld), and spec.system.keep preserves it"}},
	})
	hold(t, "default-route", map[string]row{
		"one":  {host: "w1"},
		"none": {host: "w1", before: machine(func(m *conntest.Machine) { m.NoRoute = true }), want: []string{"error: has no default route"}},
	})
}

func TestClock(t *testing.T) {
	by := func(d time.Duration) func(*conntest.Sim) {
		return machine(func(m *conntest.Machine) { m.ClockAhead = d })
	}
	hold(t, "clock", map[string]row{
		"right":     {host: "w1"},
		"a bit off": {host: "w1", before: by(4 * time.Second)},
		"ahead":     {host: "w1", before: by(6100 * time.Millisecond), want: []string{"error: the clock is 6.1s ahead of that of the workdir host"}},
		"behind":    {host: "w1", before: by(-90 * time.Second), want: []string{"error: the clock is 1m30s behind that of the workdir host"}},
	})
	kase := steptest.Case{Cluster: steptest.Cluster(t, site)}
	for made, want := range map[time.Duration]int{-time.Hour: 0, time.Hour: 1} {
		check := step(t, "preflight.clock", preflight.Options{})
		h := kase.NewHost(t, kase.Sim(t), check)
		h.BundleTime = time.Now().Add(made)
		var found steps.Findings
		if err := check.Run(t.Context(), h); err != nil && !errors.As(err, &found) {
			t.Fatal(err)
		}
		if len(found) != want || want > 0 && !strings.Contains(found[0].What, "before the bundle was built") {
			t.Errorf("made %s from now: %v", made, found)
		}
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
			found := len(look(t, c, "preflight.existing-installation", h.Name, there)) + len(look(t, c, "preflight.ports", h.Name, there))
			if want := 2 * strings.Count(hosts, h.Name); found != want {
				t.Errorf("%s: %d findings on %s, want %d", etcd, found, h.Name, want)
			}
		}
	}
}
