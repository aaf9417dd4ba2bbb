package loadbalancer

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const withKubeVIP = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
    - {name: r1, address: 192.0.2.10}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1, m2], registry: [r1]}
  controlPlaneEndpoint: {domain: api.site.example, address: 192.0.2.100}
  loadBalancer: {internal: {type: kube-vip, kubeVip: {interface: eth0}}}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

// initialized makes s the first master after kubeadm init, with the static pod that init needed.
func initialized(c *manifest.Cluster) func(*conntest.Sim) {
	return func(s *conntest.Sim) {
		steptest.ExistingKube(c, s)
		s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", true, true)
	}
}

// carryingKubeVIP returns h with the outputs that a step reads.
func carryingKubeVIP(t *testing.T, h *steps.Host, step steps.Step, p Probe, trusted bool) *steps.Host {
	t.Helper()
	writer := h.ForStep(steps.Meta{Name: "test", Writes: []steps.AnyKey{testAuthority, KubeVIPClients, Trusted}})
	for _, err := range []error{
		testAuthority.Put(writer, []byte(steptest.Authority())), KubeVIPClients.Put(writer, p), Trusted.On(h.Name).Put(writer, trusted),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return writer.ForStep(step.Meta())
}

var signedOnce = Probe{Certificate: []byte("cert\n"), Key: []byte("key\n")}

// TestKubeVIPFiles compares the manifest in each of its forms with testdata.
func TestKubeVIPFiles(t *testing.T) {
	old := strings.Replace(withKubeVIP, "v1.34.10", "v1.28.9", 1)
	ipv6 := strings.NewReplacer("192.0.2.100", "'2001:db8::100'", "192.0.2.11", "'2001:db8::11'", "192.0.2.12", "'2001:db8::12'", "192.0.2.10", "'2001:db8::10'",
		", kubeVip: {interface: eth0}", "", "{plugin: flannel}", "{plugin: flannel, kubePodsCIDR: ['fd00:10::/56'], kubeServiceCIDR: ['fd00:20::/112']}").Replace(withKubeVIP)
	for name, x := range map[string]struct {
		config string
		init   bool
	}{
		"kube-vip-init.yaml":      {withKubeVIP, true},
		"kube-vip-init-1.28.yaml": {old, true},
		"kube-vip.yaml":           {withKubeVIP, false},
		"kube-vip-ipv6.yaml":      {ipv6, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, x.config)
			kase := steptest.Case{Cluster: c, Before: initialized(c)}
			s, step := kase.Sim(t), InstallKubeVIP(c, testAuthority, KubeVIPClients)
			h := carryingKubeVIP(t, kase.NewHost(t, s, step), step, signedOnce, false)
			h.Facts.Interfaces = []runner.Interface{{Name: "bond0.7", Addresses: []netip.Prefix{netip.MustParsePrefix("2001:db8::11/64")}}}
			if x.init {
				text, err := KubeVIPForInit(c)[0].Body(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				steptest.Golden(t, *update, name, string(text))
				return
			}
			if err := step.Run(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			steptest.Golden(t, *update, name, s.Read(part.KubeVIPPod))
			if name == "kube-vip.yaml" {
				steptest.Golden(t, *update, "kube-vip.conf", withoutAuthority(s.Read(kubeVIPConf)))
			}
		})
	}
	if pods := KubeVIPForInit(steptest.Cluster(t, balanced)); pods != nil {
		t.Errorf("%+v without kube-vip", pods)
	}
}

func withoutAuthority(conf string) string {
	return strings.Replace(conf, base64.StdEncoding.EncodeToString([]byte(steptest.Authority())), "THE-CA", 1)
}

func TestKubeVIPStepsKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, withKubeVIP)
	rs := kubeVIPResources(c, func(context.Context, *steps.Host) ([]byte, error) { return []byte("a kubeconfig\n"), nil })
	steptest.Ensure(t, steptest.Case{Cluster: c, Before: initialized(c)}, op.Ensure("install", rs), op.Remove("uninstall", rs))
}

// TestKubeVIPReplacesThePodOfInit: the pod of kubeadm init ends up with a kubeconfig of its own. A
// rollback restores it, and a removal does not.
func TestKubeVIPReplacesThePodOfInit(t *testing.T) {
	c := steptest.Cluster(t, withKubeVIP)
	const first = "# Written by kubexm. That of kubeadm init.\n"
	kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
		initialized(c)(s)
		s.AddFile(part.KubeVIPPod, first, 0o600)
	}}
	s, step := kase.Sim(t), InstallKubeVIP(c, testAuthority, KubeVIPClients)
	h := carryingKubeVIP(t, kase.NewHost(t, s, step), step, signedOnce, false)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := step.Rollback(t.Context(), h); err != nil || s.Read(part.KubeVIPPod) != first || s.Read(kubeVIPConf) != "" {
		t.Errorf("%v: %s", err, s.Read(part.KubeVIPPod))
	}
	if err := step.Run(t.Context(), carryingKubeVIP(t, kase.NewHost(t, s, step), step, signedOnce, false)); err != nil {
		t.Fatal(err)
	}
	gone := UninstallKubeVIP(c)
	if err := gone.Run(t.Context(), kase.NewHost(t, s, gone)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{part.KubeVIPPod, kubeVIPConf} {
		if _, ok := s.File(p); ok {
			t.Error(p + " exists")
		}
	}
}

// TestKubeVIPRenewal: a valid kubeconfig stays, and another one starts the pod again.
func TestKubeVIPRenewal(t *testing.T) {
	c := steptest.Cluster(t, withKubeVIP)
	kase := steptest.Case{Cluster: c, Before: initialized(c)}
	s, step := kase.Sim(t), InstallKubeVIP(c, testAuthority, KubeVIPClients)
	run := func(p Probe, trusted bool) (conf, pod string) {
		t.Helper()
		if err := step.Run(t.Context(), carryingKubeVIP(t, kase.NewHost(t, s, step), step, p, trusted)); err != nil {
			t.Fatal(err)
		}
		return s.Read(kubeVIPConf), s.Read(part.KubeVIPPod)
	}
	conf, pod := run(signedOnce, false)
	again := Probe{Certificate: []byte("cert 2\n"), Key: []byte("key 2\n")}
	if c, p := run(again, true); c != conf || p != pod { // another master needed a certificate
		t.Error("a valid kubeconfig was replaced")
	}
	if c, p := run(Probe{}, true); c != conf || p != pod {
		t.Error("a valid kubeconfig was replaced")
	}
	if c, p := run(again, false); c == conf || p == pod {
		t.Error("the kubeconfig was not replaced, or the pod not started again")
	}
	s.RemoveAll(kubeVIPConf)
	if err := step.Run(t.Context(), carryingKubeVIP(t, kase.NewHost(t, s, step), step, Probe{}, true)); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("%v", err)
	}
}

// TestKubeVIPDoesNotStart: the step waits for the pod, and says what to look at.
func TestKubeVIPDoesNotStart(t *testing.T) {
	for name, answer := range map[string]connector.Result{
		"no pod":           {Stdout: []byte(`{"items":[]}`)},
		"the earlier pod":  {Stdout: []byte(`{"items":[{"id":"x","annotations":{"kubexm.mensylisir.io/kubeconfig":"0"}}]}`)},
		"no runtime":       {Exit: 1, Stderr: []byte("connect: connection refused")},
		"a foreign answer": {Stdout: []byte("pods")},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := steptest.Cluster(t, withKubeVIP)
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				initialized(c)(s)
				s.HandleProgram("crictl", func(connector.Cmd, []byte) (connector.Result, bool) { return answer, true })
			}}
			step := InstallKubeVIP(c, testAuthority, KubeVIPClients)
			err := step.Run(t.Context(), carryingKubeVIP(t, kase.NewHost(t, kase.Sim(t), step), step, signedOnce, false))
			if err == nil || name != "a foreign answer" && (!strings.Contains(err.Error(), "kube-vip does not run") || len(steps.Advice(err)) == 0) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestReleaseOfTheVirtualIP: while a kubelet runs, kube-vip gets the time to remove the address
// itself. An address that stays is removed.
func TestReleaseOfTheVirtualIP(t *testing.T) {
	const shown = "7: bond0.7@bond0    inet 192.0.2.100/32 scope global bond0.7\\       valid_lft forever\n"
	for name, x := range map[string]struct {
		kubelet bool
		ends    int // after how many requests kube-vip has removed the address; 0: never
		waits   time.Duration
		deletes int
	}{
		"it is not here":      {kubelet: true, ends: 1},
		"kube-vip removes it": {kubelet: true, ends: 5, waits: 3 * time.Second},
		"kube-vip was killed": {kubelet: true, waits: releaseTimeout + time.Second, deletes: 1},
		"no kubelet":          {deletes: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := steptest.Cluster(t, withKubeVIP)
			asked, deleted := 0, 0
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n", x.kubelet, true)
				s.HandleProgram("ip", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
					switch strings.Join(c.Argv, " ") {
					case "ip -o addr show to 192.0.2.100/32":
						if asked++; deleted > 0 || x.ends > 0 && asked >= x.ends {
							return connector.Result{}, true
						}
						return connector.Result{Stdout: []byte(shown)}, true
					case "ip addr del 192.0.2.100/32 dev bond0.7":
						deleted++
						return connector.Result{}, true
					}
					return connector.Result{Exit: 1, Stderr: []byte("unknown")}, true
				})
			}}
			s, step := kase.Sim(t), UninstallKubeVIP(c)
			began := time.Now()
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if took := time.Since(began); deleted != x.deletes || took != x.waits {
				t.Errorf("%s: %d times after %v", name, deleted, took)
			}
			asked = 0
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); x.deletes > 0 && (err != nil || v != steps.Done) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		})
	}
}

// TestTrustsKubeVIP: which kubeconfigs are replaced.
func TestTrustsKubeVIP(t *testing.T) {
	now := time.Now()
	must := func(p pki.Pair, err error) pki.Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ca, other := must(pki.NewAuthority("cluster", now)), must(pki.NewAuthority("other", now))
	text := func(p pki.Pair) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
	}
	who := pki.Request{CommonName: kubeVIPUser.user, Client: true}
	conf := func(authority, cert []byte) string {
		return "clusters: [{cluster: {certificate-authority-data: " + base64.StdEncoding.EncodeToString(authority) + "}}]\n" +
			"users: [{user: {client-certificate-data: " + base64.StdEncoding.EncodeToString(cert) + "}}]\n"
	}
	for name, x := range map[string]struct {
		conf string
		want bool
	}{
		"the cluster's":             {conf(text(ca), text(must(ca.Issue(who, now)))), true},
		"of an earlier cluster":     {conf(text(other), text(must(other.Issue(who, now)))), false},
		"signed by another CA":      {conf(text(ca), text(must(other.Issue(who, now)))), false},
		"ends in less than 30 days": {conf(text(ca), text(must(ca.Issue(who, now.Add(29*24*time.Hour-pki.LeafLifetime))))), false},
		"ends in more than 30 days": {conf(text(ca), text(must(ca.Issue(who, now.Add(31*24*time.Hour-pki.LeafLifetime))))), true},
		"no certificate":            {conf(text(ca), nil), false},
		"empty after a power loss":  {"", false},
		"not YAML":                  {"{", false},
		"not base64":                {"clusters: [{cluster: {certificate-authority-data: '*'}}]\nusers: [{}]\n", false},
	} {
		if got := trustsKubeVIP([]byte(x.conf), text(ca), now); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCheckKubeVIPTrust: a host without a kubeconfig has no trust, and one that cannot be read is
// an error.
func TestCheckKubeVIPTrust(t *testing.T) {
	c := steptest.Cluster(t, withKubeVIP)
	kase := steptest.Case{Cluster: c}
	step := CheckKubeVIPTrust(testAuthority)
	h := kase.NewHost(t, kase.Sim(t), step)
	writer := h.ForStep(steps.Meta{Name: "test", Writes: []steps.AnyKey{testAuthority}})
	if err := testAuthority.Put(writer, []byte("ca\n")); err != nil {
		t.Fatal(err)
	}
	if err := step.Run(t.Context(), writer.ForStep(step.Meta())); err != nil {
		t.Fatal(err)
	}
	reader := writer.ForStep(steps.Meta{Name: "test", Reads: []steps.AnyKey{Trusted}})
	if ok, err := Trusted.On(h.Name).Get(reader); err != nil || ok {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestSignedForHostsOfTheRun: a host that the run leaves out needs no certificate now.
func TestSignedForHostsOfTheRun(t *testing.T) {
	c := steptest.Cluster(t, withKubeVIP)
	kase := steptest.Case{Cluster: c}
	step := SignKubeVIP(c)
	h := kase.NewHost(t, kase.Sim(t), step)
	writer := h.ForStep(steps.Meta{Name: "test", Writes: []steps.AnyKey{Trusted}})
	if err := Trusted.On("m1").Put(writer, true); err != nil {
		t.Fatal(err)
	}
	for want, away := range map[steps.Verdict][]string{steps.Todo: nil, steps.Done: {"m2"}} {
		h := writer.ForStep(step.Meta())
		h.Away = away
		if v, err := step.Precheck(t.Context(), h); err != nil || v != want {
			t.Errorf("without %q: %v, %v", away, v, err)
		}
	}
}
