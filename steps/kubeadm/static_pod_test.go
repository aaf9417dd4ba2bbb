package kubeadm_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestInitStartsStaticPods: their manifests are there when kubeadm runs, after a reset too, which
// empties their folder. A failed init leaves neither a manifest nor what a pod created.
func TestInitStartsStaticPods(t *testing.T) {
	const file = "/etc/kubernetes/manifests/front.yaml"
	for name, x := range map[string]struct{ half, fails bool }{"a new host": {}, "an incomplete one": {half: true}, "kubeadm refuses": {fails: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := conntest.New(t)
			programs(s)
			if x.half {
				s.AddFile("/etc/kubernetes/pki/ca.key", "x", 0o600)
				s.AddFile(file, "an earlier one\n", 0o600)
			}
			seen := ""
			s.HandleProgram("kubeadm", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
				if c.Argv[1] != "init" {
					return connector.Result{}, false
				}
				seen = s.Read(file)
				return connector.Result{Exit: 1, Stderr: []byte("[preflight] [ERROR Swap]\n")}, x.fails
			})
			gone := 0
			need := manifest.Need{Kind: manifest.Image, Name: "front"}
			step := kubeadm.Init(steptest.Cluster(t, steptest.Small), controlplane.StaticPod{
				Path: file, Needs: []manifest.Need{need},
				Body: func(_ context.Context, h *steps.Host) ([]byte, error) {
					_, err := h.Image(need)
					return []byte("kind: Pod\n"), err
				},
				Gone: func(context.Context, *steps.Host) error { gone++; return nil },
			})
			if !slices.Contains(step.Meta().Needs, need) {
				t.Errorf("%s: %v", name, step.Meta().Needs)
			}
			h := steptest.Case{}.NewHost(t, s, step)
			if err := step.Run(t.Context(), h); (err != nil) != x.fails {
				t.Fatalf("%s: %v", name, err)
			}
			if f, _ := s.File(file); seen != "kind: Pod\n" || f.Mode != 0o600 {
				t.Errorf("%s: kubeadm found %q, mode %v", name, seen, f.Mode)
			}
			if err := step.Rollback(t.Context(), h); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if left := s.Read(file) != ""; left == x.fails || gone == 0 == x.fails { // what is complete stays
				t.Errorf("%s: after a rollback the manifest is there: %t, %d times gone", name, left, gone)
			}
		})
	}
}
