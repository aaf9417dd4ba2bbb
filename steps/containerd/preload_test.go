package containerd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestPreloadKeepsItsLaws runs it against a runtime that keeps what is pulled.
func TestPreloadKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	var pulled, pinned []string
	runtime := func(s *conntest.Sim) {
		pulled, pinned = nil, nil
		s.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			if c.Argv[1] != "pull" {
				return connector.Result{}, false
			}
			pulled = append(pulled, c.Argv[len(c.Argv)-1])
			return connector.Result{}, true
		})
		s.HandleProgram("ctr", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			switch {
			case slices.Contains(c.Argv, "list"):
				return connector.Result{Stdout: []byte(strings.Join(pinned, "\n") + "\n")}, true
			case slices.Contains(c.Argv, "label"):
				ref := c.Argv[len(c.Argv)-2]
				if !slices.Contains(pulled, ref) {
					return connector.Result{Exit: 1, Stderr: []byte("no such image\n")}, true
				}
				pinned = append(pinned, ref)
				return connector.Result{}, true
			}
			return connector.Result{}, false
		})
	}
	steptest.Do(t, steptest.Case{Cluster: c, Before: runtime}, containerd.Preload(c, []string{"pause", "kube-apiserver"}, nil), false)
	if want := []string{"registry.k8s.io/pause:1.0", "registry.k8s.io/kube-apiserver:1.0"}; !slices.Equal(pinned, want) || !slices.Equal(pulled, want) {
		t.Errorf("pulled %v, pinned %v", pulled, pinned)
	}
}
