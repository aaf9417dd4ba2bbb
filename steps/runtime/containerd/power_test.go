package containerd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestImagesOutlastThePower: containerd knows an image for ever, and has not synced
// what it was unpacked to. A host that boots after any command of the step, or when
// the step is done, ends with images that are whole.
func TestImagesOutlastThePower(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	step := containerd.Preload(c, []string{"pause", "kube-proxy", "kube-apiserver"}, nil, nil)
	const snapshots = "/var/lib/containerd/snapshots"
	for at := 1; ; at++ {
		kube, kase := steptest.NewKube(c), steptest.Case{Cluster: c}
		s := kase.Sim(t)
		kube.On(s, "node1")
		s.AddFile("/etc/containerd/certs.d/registry.k8s.io/hosts.toml", "server = ''\n", 0o644)
		for _, program := range []string{"ctr", "crictl", "containerd"} {
			s.AddFile("/usr/local/bin/"+program, "a program", 0o755)
		}
		s.AddUnit("containerd.service", "[Service]\nExecStart=/usr/local/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", true, true)
		s.KeepDisk(steptest.ImageDir)
		h := kase.NewHost(t, s, step)
		s.Break(conntest.Fault{At: at, After: true, Stay: true})
		broke := step.Run(t.Context(), h) != nil
		s.Mend()
		s.Crash(newest, all)
		v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step))
		if err == nil && v == steps.Todo {
			err = step.Run(t.Context(), kase.NewHost(t, s, step))
		}
		if err != nil {
			t.Fatalf("after command %d: %v", at, err)
		}
		whole := s.Below(snapshots)
		if len(whole) != 3 || slices.ContainsFunc(whole, func(p string) bool { return s.Read(p) == "" }) {
			t.Errorf("after command %d the images are %s", at, strings.Join(whole, ", "))
		}
		if !broke {
			if at < 6 {
				t.Errorf("%d commands in all", at-1)
			}
			return
		}
	}
}

func newest(n int) int { return n - 1 }
func all() bool        { return true }
