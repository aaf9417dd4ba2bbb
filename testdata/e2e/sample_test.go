package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/drivers"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

var updateSample = flag.Bool("update-sample", false, "write testdata/sample.yaml anew")

const mendedSample = "../../manifest/testdata/sample-mended.yaml"

// A deviation is what testdata/sample.yaml has in place of a text of the documents' sample.
type deviation struct{ text, instead, why string }

// Its addresses, ports, users, passwords, ranges and names are the sample's.
var deviations = []deviation{
	{"    type: kubexm\n    #kubelet start", "    type: kubeadm\n    #kubelet start", "Kubernetes as services is not built yet"},
	{"    autoRenewCerts: true\n", "", "renewal by a timer is not built yet"},
	{"version: v1.32.4", "version: v1.32.2", "the lab builds this one"},
	{"      version: 1.7.6\n      containerd:\n        version: 1.7.6\n", "      version: v2.1.9\n      containerd:\n        version: v2.1.9\n", "1.7.6 is older than what Kubernetes 1.32 works with"},
	{"proxyMode: ipvs", "proxyMode: iptables", "the lab's kernel has no ip_vs"},
	{"    plugin: calico\n", "    plugin: calico\n    version: v3.28.5\n", "the lab builds this one"},
	{"ipipMode: Always ", "ipipMode: Never ", "the lab's kernel has no ipip"},
	{"vxlanMode: Never ", "vxlanMode: Always ", "the same"},
	{`addons: ["metallb", "longhorn"]`, `addons: ["metallb"]`, "longhorn's source is not available as Go modules, and the lab's kernel has no iSCSI"},
	{"  addons:", "  bundle:\n    operatingSystems: [{name: debian, releases: [\"12\"], repositories: [lab.list]}]\n    images: [{reference: \"lab.test/labtool:v1.0.0\"}]\n  addons:",
		"packages come from the lab's mirror; pods of the test run the image"},
}

// deviating returns the sample with all deviations. Its blocks for DNS are comments that become part of the
// config, but for nodelocaldns: the lab's kernel has no dummy interfaces.
func deviating(t *testing.T, sample string) string {
	t.Helper()
	for _, d := range deviations {
		if strings.Count(sample, d.text) != 1 {
			t.Fatalf("the sample has %q %d times", d.text, strings.Count(sample, d.text))
		}
		sample = strings.Replace(sample, d.text, d.instead, 1)
	}
	before, rest, _ := strings.Cut(sample, "  #dns:\n")
	dns, after, found := strings.Cut(rest, "  #  nodelocaldns:\n")
	if !found {
		t.Fatal("the sample has no dns with nodelocaldns")
	}
	return before + "  dns:\n" + regexp.MustCompile(`(?m)^  #`).ReplaceAllString(dns, "  ") + "  #  nodelocaldns:\n" + after
}

// TestSampleDeviates compares the config that TestSample installs with the documents' sample.
func TestSampleDeviates(t *testing.T) {
	want := "# manifest/testdata/sample-mended.yaml with the deviations that sample_test.go lists. Do not edit: -update-sample writes it.\n" +
		deviating(t, readText(t, mendedSample))
	if *updateSample {
		if err := os.WriteFile("testdata/sample.yaml", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, readText(t, "testdata/sample.yaml")); d != "" {
		t.Errorf("testdata/sample.yaml is not the sample with its deviations:\n%s", d)
	}
}

// TestSample makes the cluster of the documents' sample on twelve hosts: three members of etcd on hosts of
// their own, three masters behind two load balancers, three workers and a registry, with calico for both
// families, volumes, metallb and zones of DNS.
//
// Stand-ins are openebs' provisioner, and the name servers that the config names.
func TestSample(t *testing.T) {
	if os.Getenv("KUBEXM_SAMPLE") == "" {
		t.Skip("KUBEXM_SAMPLE=1 runs it")
	}
	t.Setenv("REGISTRY_PASSWORD", "of-the-site")
	s, config := newSample(t)
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster mycluster: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	said(t, s.kubexm(t, "get", "endpoint", "-f", config), 0, "active", "standby")
	said(t, s.kubexm(t, "etcd", "status", "-f", config), 0, "node1", "node2", "node3")
	s.nodesAre(t, "node10", "node4", "node5", "node6", "node7", "node8")
	if labelled := s.kubectl(t, "get", "nodes", "-l", "disk=SSD,role=backend", "-o", "name"); labelled != "node/node10" {
		t.Errorf("the nodes with the labels of the sample are %q", labelled)
	}
	for _, h := range s.Hosts {
		if zone := s.on(t, h.Name, "readlink /etc/localtime"); !strings.HasSuffix(zone, "Asia/Shanghai") {
			t.Errorf("%s has the time zone %s", h.Name, zone)
		}
		s.on(t, h.Name, "dpkg -s nfs-common chrony >/dev/null && systemctl is-active chrony")
	}
	s.smoke(t)
	s.policyDrops(t)
	s.volumesOfSample(t)
	s.addressesByMetalLB(t)
	s.zonesAnswer(t)

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster mycluster: done")
	s.nothingLeft(t)
	s.asBefore(t, before)
	s.onlyNamesWereAsked(t)
}

var addressesOfHost = regexp.MustCompile(`(?m)^  - \{name: (\w+), .*internalAddress: "([^"]+)"`)

// newSample makes hosts as the sample's are before kubexm: with its users, passwords and ports.
func newSample(t *testing.T) (s *labSite, config string) {
	t.Helper()
	text := readText(t, "testdata/sample.yaml")
	var names, addresses []string
	for _, m := range addressesOfHost.FindAllStringSubmatch(text, -1) {
		names, addresses = append(names, m[1]), append(addresses, m[2])
	}
	l := lab.Start(t, len(names), lab.At(addresses...), lab.Alone())
	l.AllowEgress() // see onlyNamesWereAsked
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	s = &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: text, cluster: "mycluster", masters: []string{"h4", "h5", "h6"}}

	const user = `useradd -m -s /bin/bash -G sudo ubuntu && echo 'ubuntu ALL=(ALL) ALL' > /etc/sudoers.d/ubuntu && chmod 440 /etc/sudoers.d/ubuntu
echo 'ubuntu:Qcloud@123' | chpasswd
printf 'Port 22\nPort 8022\n' > /etc/ssh/sshd_config.d/ports.conf`
	const root = `echo 'root:Qcloud@123' | chpasswd && echo 'PermitRootLogin yes' > /etc/ssh/sshd_config.d/root.conf`
	known := readText(t, l.KnownHosts())
	for i, h := range l.Hosts {
		if strings.Contains(text, "{name: "+names[i]+", address: "+h.Address+", internalAddress: \""+addresses[i]+"\", port: 8022") {
			s.on(t, h.Name, user)
			known = strings.Replace(known, h.Name+","+h.Address+",", h.Name+",["+h.Address+"]:8022,", 1)
		} else {
			s.on(t, h.Name, root)
		}
		// The root's chrony is off for systemd alone; its links of init.d say so too after this.
		s.on(t, h.Name, "systemctl restart ssh && systemctl disable -q chrony")
	}
	if err := os.Mkdir(filepath.Join(s.dir, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(t, ".ssh/known_hosts", known)
	s.write(t, ".ssh/id_rsa", readText(t, l.Key()))

	config = s.write(t, "config.yaml", text)
	lines, err := mirror.Open(cache).Sources()
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "lab.list", strings.Join(lines, "\n")+"\n")
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s, config
}

// policyDrops asks a Service by both families, before and after a policy forbids it to one of two pods.
func (s *labSite) policyDrops(t *testing.T) {
	t.Helper()
	pods, policies, _ := strings.Cut(readText(t, "testdata/calico-policy.yaml"), "---\napiVersion: networking")
	s.kubectl(t, "apply", "-f", s.write(t, "pods.yaml", pods))
	s.kubectl(t, "wait", "--for=condition=Ready", "pod/friend", "pod/stranger", "pod/mute", "--timeout=60s")
	check := func(when string, may map[string]bool) {
		t.Helper()
		for from, want := range may {
			for _, to := range strings.Fields(s.kubectl(t, "get", "service", "both", "-o", "jsonpath={.spec.clusterIPs[*]}")) {
				out, err := s.tryKubectl(t, "exec", from, "--", "labtool", "get", "http://"+net.JoinHostPort(to, "80"))
				if (err == nil) != want {
					t.Errorf("%s: %s asks %s: %s %v", when, from, to, out, err)
				}
			}
		}
	}
	check("without a policy", map[string]bool{"friend": true, "stranger": true})
	s.kubectl(t, "apply", "-f", s.write(t, "policies.yaml", "apiVersion: networking"+policies))
	s.on(t, "h4", "sleep 3") // felix programs them in a moment
	check("with policies", map[string]bool{"friend": true, "stranger": false})
	s.kubectl(t, "delete", "-f", filepath.Join(s.dir, "policies.yaml"))
	s.kubectl(t, "delete", "-f", filepath.Join(s.dir, "pods.yaml"))
}

// volumesOfSample has pods on two nodes write to volumes of the default class.
func (s *labSite) volumesOfSample(t *testing.T) {
	t.Helper()
	s.kubectl(t, "apply", "-f", "testdata/storage-pods.yaml")
	s.kubectl(t, "rollout", "status", "statefulset/writer", "--timeout=240s")
	if boots := s.kubectl(t, "exec", "writer-0", "--", "cat", "/data/boots"); boots != "writer-0" {
		t.Errorf("the volume of writer-0 has %q", boots)
	}
	volumes := ""
	for _, worker := range []string{"h7", "h8", "h9"} {
		volumes += s.on(t, worker, "cat /var/openebs/local/pvc-*/boots 2>/dev/null || true") + "\n"
	}
	if !strings.Contains(volumes, "writer-0") || !strings.Contains(volumes, "writer-1") {
		t.Errorf("the folders of nodes have %q", volumes)
	}
	s.kubectl(t, "delete", "-f", "testdata/storage-pods.yaml")
	s.kubectl(t, "delete", "pvc", "--all")
}

// addressesByMetalLB has a Service of type LoadBalancer, and asks it from the workdir host.
func (s *labSite) addressesByMetalLB(t *testing.T) {
	t.Helper()
	s.eventually(t, "h4", "KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - <<'END'\n"+readText(t, "testdata/sample-metallb.yaml")+"END") // its webhook answers when it is up
	s.eventually(t, "h4", "KUBECONFIG=/etc/kubernetes/admin.conf kubectl get service outside -o jsonpath={.status.loadBalancer.ingress[0].ip} | grep -q 172.16.0.20")
	address := s.kubectl(t, "get", "service", "outside", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	tool, err := components.Find(rows, "labtool")
	if err != nil {
		t.Fatal(err)
	}
	for wait := patient(30 * time.Second); ; {
		out, err := s.Workdir().Command(t.Context(), filepath.Join(tool.Dir(s.cache), "labtool"), "get", "http://"+address).CombinedOutput()
		if err == nil && strings.HasPrefix(string(out), "smoke-") {
			return
		}
		if wait.over() {
			t.Fatalf("the Service at %s: %s %v", address, out, err)
		}
	}
}

// zonesAnswer starts the name servers that the config names, where hosts' default route leads, and asks
// the cluster's DNS for names of its zones from a node.
func (s *labSite) zonesAnswer(t *testing.T) {
	t.Helper()
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	server, err := components.Find(rows, "coredns")
	if err != nil {
		t.Fatal(err)
	}
	gateway := "kxl-" + s.Name + "-net"
	for _, address := range nameServers {
		if out, err := exec.CommandContext(t.Context(), "ip", "-n", gateway, "addr", "add", address+"/32", "dev", "lo").CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", address, out)
		}
	}
	zones := s.write(t, "Corefile", `.:53 {
	bind 1.1.1.1 2.2.2.2
	hosts {
		192.0.2.1 www.example.com
		192.0.2.2 www.example.io
	}
}
.:53 {
	bind 192.168.0.53
	hosts {
		192.0.2.3 files.mycompany.local
	}
}
.:53 {
	bind 8.8.8.8 1.2.4.8 114.114.114.114
	hosts {
		192.0.2.4 elsewhere.test
	}
}
`)
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", gateway, filepath.Join(server.Dir(s.cache), "coredns"), "-conf", zones)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // it is killed
	defer cmd.Process.Kill()

	service := s.kubectl(t, "-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}")
	pod := s.kubectl(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[0].status.podIP}")
	node := drivers.Within("/run/netns/kxl-" + s.Name + "-h7")
	for _, q := range []struct{ at, name, want string }{
		{service + ":53", "www.example.com.", "192.0.2.1"},
		{pod + ":1053", "www.example.io.", "192.0.2.2"},
		{pod + ":4453", "files.mycompany.local.", "192.0.2.3"},
		{service + ":53", "elsewhere.test.", "192.0.2.4"},
		{service + ":53", "api.example.com.", "192.168.0.100"},
		{service + ":53", "smoke.default.my.domain.", s.kubectl(t, "get", "service", "smoke", "-o", "jsonpath={.spec.clusterIP}")},
	} {
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) { return node.Dial(ctx, network, q.at) }}
		got := ""
		for wait := patient(20 * time.Second); ; {
			found, err := resolver.LookupNetIP(t.Context(), "ip4", q.name)
			if got = fmt.Sprint(found, err); strings.HasPrefix(got, "["+q.want+"]") || wait.over() {
				break
			}
		}
		if !strings.HasPrefix(got, "["+q.want+"]") {
			t.Errorf("%s of %s: %s, want %s", q.name, q.at, got, q.want)
		}
	}
}

// nameServers are all that the sample names.
var nameServers = []string{"1.1.1.1", "2.2.2.2", "192.168.0.53", "8.8.8.8", "1.2.4.8", "114.114.114.114"}

// onlyNamesWereAsked looks at what left the site: the config has hosts ask for the names of time servers,
// and CoreDNS ask name servers outside.
func (s *labSite) onlyNamesWereAsked(t *testing.T) {
	t.Helper()
	all, err := s.Egress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range lab.Left(all) {
		timeServer := a.Destination.String() == s.Gateway() && (strings.HasPrefix(a.Name, "time1.cloud.tencent.com") || strings.HasPrefix(a.Name, "ntp.aliyun.com"))
		if a.Protocol != "dns" || !timeServer && !slices.Contains(nameServers, a.Destination.String()) {
			t.Errorf("something tried to leave the lab: %s", a)
		}
	}
}
