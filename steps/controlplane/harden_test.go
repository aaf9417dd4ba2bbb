package controlplane_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// two is a master and a worker; what follows is the rest of spec.
const two = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 10.0.0.11}
    - {name: w1, address: 192.0.2.21, internalAddress: 10.0.0.21}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1]}
  etcd: {type: kubeadm}
`

// spec puts the parts that a case writes in place of those of two.
func spec(text string) string {
	base := two
	if strings.Contains(text, "  etcd:") {
		base = strings.Replace(base, "  etcd: {type: kubeadm}\n", "", 1)
	}
	if !strings.Contains(text, "  network:") {
		base += "  network: {plugin: flannel}\n"
	}
	return base + text
}

func TestHardenKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"with a log of another's": func(s *conntest.Sim) {
			s.AddFile("/var/log/kubernetes/theirs.log", "x", 0o640)
			s.AddDir("/etc/kubernetes", 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steptest.Ensure(t, steptest.Case{Cluster: c, Before: before}, controlplane.Harden(c), controlplane.RemoveHardening(c))
		})
	}
}

// TestDocumentsOfTheAPIServer are what it reads beside its flags.
func TestDocumentsOfTheAPIServer(t *testing.T) {
	for name, text := range map[string]string{
		"1.24": spec("  kubernetes: {version: v1.24.17}\n"),
		"1.32": spec("  kubernetes: {version: v1.32.2, hardening: {podSecurity: restricted, privilegedNamespaces: [probes, kube-system]}}\n  addons: [{name: shop, type: helm, source: 'https://charts.example', version: 1.2.3}, {name: open, type: helm, source: 'https://charts.example', version: 1.2.3, namespace: default}]\n"),
		"1.35": spec("  kubernetes: {version: v1.35.1}\n"),
		"bare": strings.Replace(spec("  kubernetes: {version: v1.32.2}\n"), "network: {plugin: flannel}", "network: {plugin: none}", 1),
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, text)
			kase := steptest.Case{Cluster: c, Host: c.Spec.Hosts[0]}
			s := kase.Sim(t)
			step := controlplane.Harden(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, p := range []string{manifest.AdmissionConfig, manifest.AuditPolicy, manifest.AuthConfig} {
				f, _ := s.File(p)
				if f.Mode != 0o600 {
					t.Errorf("%s has mode %v", p, f.Mode)
				}
				all.WriteString("# " + p + "\n" + string(f.Data))
			}
			steptest.Golden(t, *update, "api-server-"+name+".txt", all.String())
		})
	}
}

// TestKeyIsRecalled: a machine without it gets it, and so does one with another.
func TestKeyIsRecalled(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	s := kase.Sim(t)
	h := kase.NewHost(t, s, controlplane.Harden(c))
	here := filepath.Join(kase.Workdir, "certs", "kubernetes", manifest.EncryptionName)
	if err := controlplane.Recall(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(here)); err == nil {
		t.Error("a cluster without a key left a folder here")
	}
	for _, text := range []string{"kind: EncryptionConfiguration # one\n", "kind: EncryptionConfiguration # two\n"} {
		s.AddFile(manifest.EncryptionConfig, text, 0o600)
		before := s.Snapshot()
		for range 2 {
			if err := controlplane.Recall(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(here); err != nil || string(got) != text {
			t.Errorf("%q here (%v)", got, err)
		}
		if d := conntest.Diff(before, s.Snapshot()); d != "" {
			t.Errorf("the host changed:\n%s", d)
		}
	}
}

// written are files as kubeadm, the kubelet and flannel leave them.
func written(s *conntest.Sim) {
	for path, mode := range map[string]os.FileMode{
		"/etc/kubernetes/admin.conf": 0o600, "/etc/kubernetes/pki/ca.crt": 0o644, "/etc/kubernetes/pki/ca.key": 0o600, "/etc/kubernetes/pki/etcd/ca.crt": 0o644,
		"/var/lib/kubelet/config.yaml": 0o644, "/etc/cni/net.d/10-flannel.conflist": 0o644, "/etc/kubernetes/README": 0o644, "/var/lib/kubelet/other": 0o644,
	} {
		s.AddFile(path, "x", mode)
	}
}

func TestRestrictFilesKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	steptest.Do(t, steptest.Case{Cluster: c, Before: written}, controlplane.RestrictFiles(c), false)
	steptest.Do(t, steptest.Case{Cluster: c, Before: func(s *conntest.Sim) { s.AddFile("/var/lib/kubelet/config.yaml", "x", 0o644) }}, controlplane.RestrictFiles(c), false)
	kase := steptest.Case{Cluster: c, Before: written}
	s := kase.Sim(t)
	step := controlplane.RestrictFiles(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		"/etc/kubernetes/admin.conf": 0o600, "/etc/kubernetes/pki": 0o700, "/etc/kubernetes/pki/ca.crt": 0o600, "/etc/kubernetes/pki/etcd": 0o700, "/etc/kubernetes/pki/etcd/ca.crt": 0o600,
		"/var/lib/kubelet/config.yaml": 0o600, "/etc/cni/net.d/10-flannel.conflist": 0o600, "/etc/kubernetes/README": 0o644, "/var/lib/kubelet/other": 0o644,
	} {
		if f, _ := s.File(path); f.Mode.Perm() != want {
			t.Errorf("%s has mode %v", path, f.Mode)
		}
	}
}

// TestPodsAskTheCache: kubelets give pods the address of the DNS cache, if there is one.
func TestPodsAskTheCache(t *testing.T) {
	for more, want := range map[string]string{"": "[]", "  dns: {nodelocaldns: {enabled: true}}\n": "[169.254.20.10]"} {
		o, err := controlplane.KubeletConfig(steptest.Cluster(t, steptest.Small+more))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := o["clusterDNS"].([]string); fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", more, got, want)
		}
	}
}
