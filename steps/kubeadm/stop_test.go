package kubeadm_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestStopAPIServer: the API server of a master ends once, and after a reset, which may have ended
// the runtime too, nothing is asked.
func TestStopAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubeadm}")
		m.must(m.join())
		const file = "/etc/kubernetes/manifests/kube-apiserver.yaml"
		stop := kubeadm.StopAPIServer()
		m.must(m.step(stop, false))
		if m.second.Read(file) != "" || m.first.Read(file) == "" {
			t.Error("the wrong API server was stopped")
		}
		m.must(m.step(stop, false))
		m.must(m.step(kubeadm.ResetMaster(), false))
		m.second.HandleProgram("crictl", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 127}, true
		})
		m.must(m.step(stop, false))
	})
}

// TestAPIServerWithoutKubelet: a pod that no kubelet stops is stopped by the runtime; one that runs
// on is an error.
func TestAPIServerWithoutKubelet(t *testing.T) {
	for name, obeys := range map[string]bool{"it stops": true, "it runs on": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := conntest.New(t)
				s.AddFile("/etc/kubernetes/manifests/kube-apiserver.yaml", "kind: Pod\n", 0o600)
				running, begin := true, time.Now()
				s.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
					if c.Argv[1] == "stopp" {
						running = !obeys
						return connector.Result{}, true
					}
					if !running {
						return connector.Result{}, true
					}
					return connector.Result{Stdout: []byte("sandbox\n")}, true
				})
				step := kubeadm.StopAPIServer()
				err := step.Run(t.Context(), steptest.Case{Cluster: steptest.Cluster(t, steptest.Small)}.NewHost(t, s, step))
				if obeys && (err != nil || time.Since(begin) > time.Minute) {
					t.Errorf("after %s: %v", time.Since(begin), err)
				}
				if !obeys && (err == nil || !strings.Contains(err.Error(), "kube-apiserver still runs on node1 3m0s after") || len(steps.Advice(err)) == 0) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
