package installer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestHealth: a new cluster is healthy, and each thing that is wrong is one problem of its check.
func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters")
		s.Must(pipeline.Create, "create")
		// Some files of the simulated kubeadm and kubelet hold words in place of a certificate.
		real := s.Sims["m1"].Read("/etc/kubernetes/pki/ca.crt")
		for _, host := range s.Cluster.Spec.Hosts {
			sim := s.Sims[host.Name]
			for _, file := range controlplane.Certificates() {
				if text := sim.Read(file); text != "" {
					if _, err := pki.Certificates([]byte(text)); err != nil {
						sim.AddFile(file, real, 0o600)
					}
				}
			}
		}
		health := func(after time.Duration, silent ...string) map[string]installer.Health {
			t.Helper()
			var unreached installer.HostErrors
			for _, name := range silent {
				unreached = append(unreached, &installer.HostError{Host: name, Err: fmt.Errorf("no answer")})
			}
			all, err := installer.HealthOf(t.Context(), s.Cluster, s.Hosts(silent...), unreached, time.Now().Add(after))
			if err != nil {
				t.Fatal(err)
			}
			out := map[string]installer.Health{}
			for _, h := range all {
				out[h.Check] = h
			}
			return out
		}
		problems := func(all map[string]installer.Health) (out []string) {
			for name, h := range all {
				if h.Healthy != (len(h.Problems) == 0) {
					t.Errorf("%+v", h)
				}
				for _, p := range h.Problems {
					out = append(out, name+": "+p)
				}
			}
			slices.Sort(out)
			return out
		}
		well := health(0)
		if got := problems(well); len(got) > 0 {
			t.Fatalf("%q", got)
		}
		for check, want := range map[string]string{
			"hosts": "5 of 5 answer", "API": "3 of 3 API servers are ready", "etcd": "3 of 3 members are healthy; etcd needs 2", "nodes": "4 of 4 are Ready",
		} {
			if got := well[check].Detail; got != want {
				t.Errorf("%s: %s, want %s", check, got, want)
			}
		}
		if got := well["certificates"].Detail; !strings.Contains(got, "expires in 36") || !strings.Contains(got, ".crt on ") {
			t.Errorf("certificates: %s", got)
		}
		if got := problems(health(340 * 24 * time.Hour)); len(got) == 0 || !strings.Contains(got[0], "certificates: /etc/etcd/pki/healthcheck-client.crt on m1 expires in ") {
			t.Errorf("%q", got)
		}
		if got := problems(health(400 * 24 * time.Hour)); len(got) == 0 || !strings.Contains(got[0], " has expired on ") {
			t.Errorf("%q", got)
		}

		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = append(k.Unhealthy, "etcd-m2", "kube-apiserver-m3") })
		s.Sims["w1"].SetMachine(func(m *conntest.Machine) { m.ClockAhead = 10 * time.Second })
		got := strings.Join(problems(health(0, "r1")), "\n")
		for _, want := range []string{"hosts: host r1", "etcd: member m2: it does not answer", "API: the API server of m3 is not ready", "time: the clock of w1 differs from this machine's by 10s"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nlacks %s", got, want)
			}
		}
		if n := strings.Count(got, "\n") + 1; n != 4 {
			t.Errorf("%d problems:\n%s", n, got)
		}
	})
}
