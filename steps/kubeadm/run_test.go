package kubeadm_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// verb answers every command of a verb.
func verb(s *conntest.Sim, verb string, answer func() string) {
	s.Handle(func(c connector.Cmd) bool { return c.Verb == verb }, func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Stdout: []byte(answer())}, true
	})
}

// A kubelet that ends whenever it is started is not waited for as long as
// kubeadm would, and its own reason is given.
func TestKubeletThatEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		s := conntest.New(t)
		s.HandleProgram("kubeadm", func(connector.Cmd, []byte) (connector.Result, bool) {
			verb(s, connector.VerbJobPoll, func() string { // it never ends
				return "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nExecMainCode=0\nExecMainStatus=0\n\n"
			})
			return connector.Result{}, true
		})
		began, restarts := time.Now(), 0
		verb(s, connector.VerbUnitShow, func() string {
			restarts = int(time.Since(began) / (10 * time.Second))
			return fmt.Sprintf("Id=kubelet.service\nLoadState=loaded\nActiveState=activating\nSubState=auto-restart\nNRestarts=%d\n", restarts)
		})
		verb(s, connector.VerbUnitJournal, func() string {
			return `2026-01-01T00:00:00+0000 m1 kubelet[9]: E0101 00:00:00.0 9 run.go:72] "command failed" err="unknown flag: --nonsense"` + "\n"
		})
		kase := steptest.Case{Cluster: c}
		step := kubeadm.Init(c)
		err := step.Run(t.Context(), kase.NewHost(t, s, step))
		if err == nil || !strings.Contains(err.Error(), "the kubelet does not run: unknown flag: --nonsense") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took < 30*time.Second || took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// A part of the control plane that ends is named, with its last words.
func TestControlPlaneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		s := conntest.New(t)
		s.HandleProgram("kubeadm", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("could not initialize a Kubernetes cluster\n")}, true
		})
		s.AddFile("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n", 0o644)
		s.StartUnit("kubelet.service")
		s.HandleProgram("crictl", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Stdout: []byte(`{"containers": [
				{"id": "1", "state": "CONTAINER_EXITED", "createdAt": "1", "metadata": {"name": "etcd"}},
				{"id": "2", "state": "CONTAINER_RUNNING", "createdAt": "2", "metadata": {"name": "etcd"}},
				{"id": "3", "state": "CONTAINER_EXITED", "createdAt": "3", "metadata": {"name": "kube-apiserver"}}]}`)}, true
		})
		s.HandleProgram("/bin/sh", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			if c.Argv[len(c.Argv)-1] != "3" {
				t.Errorf("the log of %q was asked for", c.Argv)
			}
			return connector.Result{Stdout: []byte("Usage:\nError: unknown flag: --nonsense\n")}, true
		})
		kase := steptest.Case{Cluster: c}
		step := kubeadm.Init(c)
		err := step.Run(t.Context(), kase.NewHost(t, s, step))
		if err == nil || err.Error() != "container kube-apiserver does not run: Error: unknown flag: --nonsense" {
			t.Errorf("%v", err)
		}
	})
}

// Where the site's load balancer does not lead to the API server that runs, that is
// said, and not that the kubelet may be at fault.
func TestEndpointThatLeadsNowhere(t *testing.T) {
	for what, kase := range map[string]struct{ state, want string }{
		"it runs":   {"CONTAINER_RUNNING", "the API server of node1 runs, but cannot be reached at 192.0.2.100:6443 (spec.controlPlaneEndpoint): "},
		"none runs": {"CONTAINER_CREATED", "could not initialize"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := steptest.Cluster(t, strings.Replace(steptest.Small, "  kubernetes:", "  controlPlaneEndpoint: {address: 192.0.2.100}\n  loadBalancer: {external: {type: external}}\n  kubernetes:", 1))
				s := conntest.New(t)
				s.HandleProgram("kubeadm", func(connector.Cmd, []byte) (connector.Result, bool) {
					s.AddFile(controlplane.AuthorityFile, steptest.Authority(), 0o644)
					return connector.Result{Exit: 1, Stderr: []byte("could not initialize a Kubernetes cluster\n")}, true
				})
				s.AddFile("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n", 0o644)
				s.StartUnit("kubelet.service")
				s.HandleProgram("crictl", func(connector.Cmd, []byte) (connector.Result, bool) {
					return connector.Result{Stdout: []byte(`{"containers": [{"id": "1", "state": "` + kase.state + `", "createdAt": "1", "metadata": {"name": "kube-apiserver"}}]}`)}, true
				})
				s.HandleProgram("/bin/sh", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{}, true })
				step := kubeadm.Init(c)
				err := step.Run(t.Context(), (&steptest.Case{Cluster: c}).NewHost(t, s, step))
				if err == nil || !strings.Contains(err.Error(), kase.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
