package runtime_test

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/runtime"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestOfIsComplete: plans are made of configs with any runtime, also of those that are
// refused later.
func TestOfIsComplete(t *testing.T) {
	supported := 0
	for _, name := range []string{"containerd", "docker", "cri-o", "isulad"} {
		c := steptest.Cluster(t, steptest.Small)
		c.Spec.Runtime.Type = name
		e := runtime.Of(c)
		if e.Install == nil || e.Remove == nil || e.Start == nil || e.Stop == nil || e.Preload == nil || e.Import == nil {
			t.Errorf("%s: %+v", name, e)
		}
		if part.RuntimeOf(c).Supported {
			supported++
		}
	}
	if supported != 1 {
		t.Errorf("%d runtimes are supported: Of has to choose", supported)
	}
}
