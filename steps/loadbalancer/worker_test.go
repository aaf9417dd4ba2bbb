package loadbalancer

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const onWorkers = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: w1, address: 192.0.2.21}
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1, m2], worker: [w1], registry: [m1]}
  controlPlaneEndpoint: {domain: api.site.example}
  loadBalancer: {internal: {type: haproxy}}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

var testAuthority = steps.NewKey[[]byte]("test.authority")

func joinedWorker(c *manifest.Cluster) func(*conntest.Sim) {
	return func(s *conntest.Sim) { steptest.JoinedWorker(c, s, "w1") }
}

// carrying returns h with the outputs that a step reads: the cluster's CA, and the probe's
// certificate.
func carrying(t *testing.T, h *steps.Host, step steps.Step, ca, probe string) *steps.Host {
	t.Helper()
	writer := h.ForStep(steps.Meta{Name: "test", Writes: []steps.AnyKey{testAuthority, WorkerProbes, Trusted}})
	for _, err := range []error{
		testAuthority.Put(writer, []byte(ca)), WorkerProbes.Put(writer, Probe{Certificate: []byte(probe), Key: []byte("key\n")}), Trusted.On(h.Name).Put(writer, false),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return writer.ForStep(step.Meta())
}

func TestWorkerStepsKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, strings.Replace(onWorkers, "haproxy", "nginx", 1))
	kase := steptest.Case{Cluster: c, Before: joinedWorker(c)}
	steptest.Ensure(t, kase, InstallOnWorker(c, testAuthority, WorkerProbes), UninstallFromWorker(c))
}

// TestWorkerFiles compares the files on a worker with those in testdata.
func TestWorkerFiles(t *testing.T) {
	ipv6 := strings.NewReplacer("192.0.2.11", "'2001:db8::11'", "192.0.2.12", "'2001:db8::12'", "192.0.2.21", "'2001:db8::21'",
		"{plugin: flannel}", "{plugin: flannel, kubePodsCIDR: ['fd00:10::/56'], kubeServiceCIDR: ['fd00:20::/112']}").Replace(onWorkers)
	for name, x := range map[string]struct{ config, file string }{
		"worker-haproxy.cfg":      {onWorkers, WorkerDir + "/haproxy.cfg"},
		"worker-haproxy-ipv6.cfg": {ipv6, WorkerDir + "/haproxy.cfg"},
		"worker-haproxy.yaml":     {onWorkers, part.WorkerBalancerPod},
		"worker-nginx.conf":       {strings.Replace(onWorkers, "haproxy", "nginx", 1), WorkerDir + "/nginx.conf"},
		"worker-nginx.yaml":       {strings.Replace(onWorkers, "haproxy", "nginx", 1), part.WorkerBalancerPod},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, x.config)
			kase := steptest.Case{Cluster: c, Before: joinedWorker(c)}
			s, step := kase.Sim(t), InstallOnWorker(c, testAuthority, WorkerProbes)
			if err := step.Run(t.Context(), carrying(t, kase.NewHost(t, s, step), step, "ca\n", "probe\n")); err != nil {
				t.Fatal(err)
			}
			steptest.Golden(t, *update, name, s.Read(x.file))
		})
	}
}

// TestWorkerReload: a changed configuration or certificate is taken over by a signal, and the
// pod goes on. A program that does not take it over fails the step.
func TestWorkerReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, onWorkers)
		kase := steptest.Case{Cluster: c, Before: joinedWorker(c)}
		s, step := kase.Sim(t), InstallOnWorker(c, testAuthority, WorkerProbes)
		signals := func() (n int) {
			for _, call := range s.Calls() {
				if call.Verb == connector.VerbExec && slices.Equal(call.Argv, []string{"kill", "-USR2", "4711"}) {
					n++
				}
			}
			return n
		}
		run := func(ca string) error {
			return step.Run(t.Context(), carrying(t, kase.NewHost(t, s, step), step, ca, "probe\n"))
		}
		if err := run("ca\n"); err != nil || signals() != 0 {
			t.Fatalf("%v, %d signals to a program that starts with its configuration", err, signals())
		}
		if err := run("another ca\n"); err != nil || signals() != 1 {
			t.Fatalf("%v, %d signals", err, signals())
		}
		// Interrupted between the file and the signal.
		config := WorkerDir + "/haproxy.cfg"
		now := s.Read(config)
		if err := run("ca\n"); err != nil || signals() != 2 {
			t.Fatalf("%v, %d signals", err, signals())
		}
		s.AddFile(config, now, 0o644)
		s.AddFile(WorkerDir+"/ca.crt", "another ca\n", 0o644)
		if err := run("another ca\n"); err != nil || signals() != 3 {
			t.Fatalf("%v, %d signals", err, signals())
		}
		s.HandleProgram("kill", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{}, true })
		if err := run("ca\n"); err == nil || !strings.Contains(err.Error(), "does not use the configuration") || len(steps.Advice(err)) == 0 {
			t.Errorf("%v", err)
		}
	})
}
