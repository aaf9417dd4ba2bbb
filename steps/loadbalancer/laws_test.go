package loadbalancer

import (
	"encoding/pem"
	"errors"
	"flag"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

const balanced = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: b1, address: 192.0.2.31}
    - {name: b2, address: 192.0.2.32}
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1, m2], loadbalancer: [b1, b2], registry: [b1]}
  controlPlaneEndpoint: {domain: api.site.example, address: 192.0.2.100}
  loadBalancer: {external: {type: kubexm-kh, keepalived: {interface: eth0}}}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

func with(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(balanced) }

var ipv6 = with("address: 192.0.2.100", "address: '2001:db8::100'", "address: 192.0.2.31", "address: 192.0.2.31, internalAddress: ['2001:db8::31']",
	"address: 192.0.2.32", "address: 192.0.2.32, internalAddress: ['2001:db8::32']")

// packaged puts the programs on a host, as their packages do.
func packaged(s *conntest.Sim) {
	steptest.LoadBalancers(s)
	for _, name := range []string{"haproxy", "nginx", "keepalived"} {
		s.AddUnit(name+".service", "[Service]\nExecStart=/usr/sbin/"+name+"\n[Install]\nWantedBy=multi-user.target\n", false, false)
	}
	s.AddFile("/etc/haproxy/haproxy.cfg", "the distribution's\n", 0o640)
	s.AddFile("/etc/keepalived/keepalived.conf.sample", "the distribution's\n", 0o644)
	s.AddFile("/etc/nginx/nginx.conf", "the distribution's\n", 0o644)
}

func TestStepsKeepTheirLaws(t *testing.T) {
	for name, config := range map[string]string{"haproxy": balanced, "nginx": with("kubexm-kh", "kubexm-kn"), "ipv6": ipv6} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, config)
			kase := steptest.Case{Cluster: c, Before: packaged, Varies: []string{caFile, probeFile}}
			if name != "haproxy" {
				kase.Every = 4 // they differ in the text of files
			}
			steptest.Ensure(t, kase, Install(c), Uninstall(c))
			steptest.Ensure(t, steptest.Case{Cluster: c}, MaskServices(c), UnmaskServices(c))
		})
	}
}

// TestFiles compares the configurations with those in testdata.
func TestFiles(t *testing.T) {
	for name, c := range map[string]struct{ config, file string }{
		"haproxy.cfg":          {balanced, "/etc/haproxy/haproxy.cfg"},
		"nginx.conf":           {with("kubexm-kh", "kubexm-kn"), "/etc/nginx/nginx.conf"},
		"keepalived.conf":      {balanced, keepalivedFile},
		"keepalived-ipv6.conf": {ipv6, keepalivedFile},
		"haproxy-ipv6.cfg":     {ipv6, "/etc/haproxy/haproxy.cfg"},
		"check":                {balanced, script},
		"state":                {balanced, notifier},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: steptest.Cluster(t, c.config), Before: packaged}
			s := kase.Sim(t)
			step := Install(kase.Cluster)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			steptest.Golden(t, *update, name, s.Read(c.file))
		})
	}
}

// TestRejectedConfiguration: a configuration that the program rejects does not replace the
// one in use, and nothing is started.
func TestRejectedConfiguration(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, balanced), Before: func(s *conntest.Sim) {
		packaged(s)
		s.HandleProgram("haproxy", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("[ALERT] config : parsing [haproxy.cfg.new:3]")}, true
		})
	}}
	s := kase.Sim(t)
	step := Install(kase.Cluster)
	err := step.Run(t.Context(), kase.NewHost(t, s, step))
	if err == nil || !strings.Contains(err.Error(), "parsing") || len(steps.Advice(err)) == 0 {
		t.Errorf("%v", err)
	}
	if got := s.Read("/etc/haproxy/haproxy.cfg"); got != "the distribution's\n" {
		t.Errorf("haproxy.cfg is\n%s", got)
	}
	if s.Read(Dir+"/haproxy.cfg.new") != "" || s.Unit("haproxy.service").Active {
		t.Error("the rejected file or the service exists")
	}
}

// TestTrusted: which certificates are replaced.
func TestTrusted(t *testing.T) {
	now := time.Now()
	must := func(p pki.Pair, err error) pki.Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ca, other := must(pki.NewAuthority("cluster", now)), must(pki.NewAuthority("other", now))
	client := pki.Request{CommonName: probeUser, Organizations: []string{probeGroup}, Client: true}
	text := func(p pki.Pair) string {
		cert, key, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(cert) + string(key)
	}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Raw}))
	good := text(must(ca.Issue(client, now)))
	for name, c := range map[string]struct {
		ca, probe string
		want      bool
	}{
		"both are the cluster's":     {authority, good, true},
		"another CA":                 {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate.Raw})), good, false},
		"signed by another CA":       {authority, text(must(other.Issue(client, now))), false},
		"ends in less than 30 days":  {authority, text(must(ca.Issue(client, now.Add(29*24*time.Hour-pki.LeafLifetime)))), false},
		"ends in more than 30 days":  {authority, text(must(ca.Issue(client, now.Add(31*24*time.Hour-pki.LeafLifetime)))), true},
		"not for clients":            {authority, text(must(ca.Issue(pki.Request{CommonName: "x", Server: true, Names: []string{"x"}}, now))), false},
		"no certificate":             {authority, "", false},
		"damaged":                    {authority, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false},
		"the placeholder of Install": {text(other), text(other), false},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: steptest.Cluster(t, balanced), Before: func(s *conntest.Sim) {
				s.AddFile(caFile, c.ca, 0o644)
				s.AddFile(probeFile, c.probe, 0o600)
			}}
			got, err := trusted(t.Context(), kase.NewHost(t, kase.Sim(t), Install(kase.Cluster)), Dir, []byte(authority), now)
			if err != nil || got != c.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestInterface: where the virtual IP is held.
func TestInterface(t *testing.T) {
	for name, c := range map[string]struct {
		config, want string
		err          string
	}{
		"the config's":                 {balanced, "eth0", ""},
		"that of the internal address": {with(", keepalived: {interface: eth0}", ""), "bond0", ""},
		"no address of the family":     {with(", keepalived: {interface: eth0}", "", "address: 192.0.2.100", "address: '2001:db8::100'"), "", "host b1 has no internal address of the virtual IP's family"},
		"no such address":              {with(", keepalived: {interface: eth0}", "", "192.0.2.31", "192.0.2.33"), "", "no network interface of b1 has the address 192.0.2.33"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := steptest.Cluster(t, c.config)
			h := &steps.Host{Host: cluster.Spec.Hosts[0], Facts: runner.Facts{Interfaces: []runner.Interface{
				{Name: "bond0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.31/24")}}, {Name: "eth0"},
			}}}
			got, err := Interface(cluster, h)
			var none *NoInterfaceError
			if got != c.want || (c.err != "") != errors.As(err, &none) || c.err != "" && none.Error() != c.err {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
