package kubeadm_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func newest(n int) int { return n - 1 }
func all() bool        { return true }

// TestWhatWasMadeOutlastsThePower: kubeadm syncs nothing. A master or a worker that
// loses its power right after its step was done has its keys, and is done still.
func TestWhatWasMadeOutlastsThePower(t *testing.T) {
	t.Run("master", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := steptest.Cluster(t, steptest.Small)
			s := conntest.New(t)
			programs(s)
			s.KeepDisk()
			step := kubeadm.Init(c)
			if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			s.Crash(newest, all)
			for _, p := range []string{kubectl.AdminConf, "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/manifests/kube-apiserver.yaml"} {
				if s.Read(p) == "" {
					t.Errorf("%s is empty", p)
				}
			}
		})
	})
	t.Run("worker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.worker.KeepDisk()
			p.token()
			if err := p.join.Run(t.Context(), p.on("node2", p.worker, p.join)); err != nil {
				t.Fatal(err)
			}
			p.worker.Crash(newest, all)
			if p.worker.Read("/etc/kubernetes/kubelet.conf") == "" {
				t.Error("kubelet.conf is empty")
			}
		})
	})
}

// TestAnEmptyKubeconfigIsNone: what the power took away is made again.
func TestAnEmptyKubeconfigIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.token()
		if err := p.join.Run(t.Context(), p.on("node2", p.worker, p.join)); err != nil {
			t.Fatal(err)
		}
		p.worker.AddFile("/etc/kubernetes/kubelet.conf", "", 0o600)
		if v, err := p.join.Precheck(t.Context(), p.on("node2", p.worker, p.join)); err != nil || v != steps.Todo {
			t.Errorf("%v, %v", v, err)
		}
	})
}

// TestAResetThatWasCutOffGoesOn breaks the wire at every command of a reset: the
// next run still finds what kubeadm's own leaves behind.
func TestAResetThatWasCutOffGoesOn(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			broke := false
			t.Run(fmt.Sprintf("%d after=%t", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t)
					p.token()
					if err := p.join.Run(t.Context(), p.on("node2", p.worker, p.join)); err != nil {
						t.Fatal(err)
					}
					step := kubeadm.ResetWorker()
					h := p.on("node2", p.worker, step)
					p.worker.ForgetCalls()
					p.worker.Break(conntest.Fault{At: at, After: after, Stay: true})
					_ = step.Run(t.Context(), h) // it breaks
					p.worker.Mend()
					broke = slices.ContainsFunc(p.worker.Calls(), func(c conntest.Call) bool { return c.Err != nil })
					h = p.on("node2", p.worker, step)
					v, err := step.Precheck(t.Context(), h)
					if err == nil && v == steps.Todo {
						err = step.Run(t.Context(), h)
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, dir := range []string{"/etc/kubernetes", "/var/lib/kubelet"} {
						if _, ok := p.worker.File(dir); ok {
							t.Errorf("%s is left", dir)
						}
					}
				})
			})
			if !broke || t.Failed() {
				break
			}
		}
	}
}

// TestAKeyWithoutItsCertificateIsReset: kubeadm takes the keys that it finds,
// and stops at one that stands alone.
func TestAKeyWithoutItsCertificateIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		s := conntest.New(t)
		programs(s)
		s.AddFile("/etc/kubernetes/pki/ca.key", "", 0o600)
		step := kubeadm.Init(c)
		if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		if n := ran(s, "reset"); n != 1 {
			t.Errorf("%d resets", n)
		}
	})
}

// TestARollbackLeavesACompleteMaster breaks the wire once at every command of an init
// and takes it back, as a run does whose step failed: a control plane that kubeadm
// has made whole by then is not reset, and the next look finds it done.
func TestARollbackLeavesACompleteMaster(t *testing.T) {
	wholes := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			broke := false
			t.Run(fmt.Sprintf("%d after=%t", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := steptest.Cluster(t, steptest.Small)
					s := conntest.New(t)
					programs(s)
					step := kubeadm.Init(c)
					h := steptest.Case{Cluster: c}.NewHost(t, s, step)
					s.ForgetCalls()
					s.Break(conntest.Fault{At: at, After: after})
					err := step.Run(t.Context(), h)
					if broke = slices.ContainsFunc(s.Calls(), func(c conntest.Call) bool { return c.Err != nil }); !broke || err == nil {
						return
					}
					_, whole := s.File(kubectl.AdminConf)
					if err := step.Rollback(t.Context(), h); err != nil {
						t.Fatal(err)
					}
					if !whole {
						return
					}
					wholes++
					if n := ran(s, "reset"); n != 0 {
						t.Errorf("a whole control plane was reset")
					}
					if v, err := step.Precheck(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil || v != steps.Done {
						t.Errorf("%v, %v", v, err)
					}
				})
			})
			if !broke {
				break
			}
		}
	}
	if wholes < 2 {
		t.Errorf("%d times the control plane was whole", wholes)
	}
}
