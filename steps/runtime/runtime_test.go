package runtime_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/runtime"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestOfIsComplete: plans are made of configs with any runtime, also of those that are
// refused later. One that is supported has steps of its own.
func TestOfIsComplete(t *testing.T) {
	supported := 0
	root := manifest.ConfigFields()
	field, _ := root.Find("spec.runtime.type")
	for _, name := range field.Enum {
		c := steptest.Cluster(t, steptest.Small)
		c.Spec.Runtime.Type = name
		e := runtime.Of(c)
		if e.Install == nil || e.Remove == nil || e.Restart == nil || e.Start == nil || e.Stop == nil || e.Preload == nil || e.Import == nil {
			t.Fatalf("%s: %+v", name, e)
		}
		r := part.RuntimeOf(c)
		if own := strings.HasPrefix(e.Install.Meta().Name, name+"."); own != r.Supported {
			t.Errorf("%s is supported: %t, and is installed by %s", name, r.Supported, e.Install.Meta().Name)
		}
		if r.Supported {
			supported++
			if r.Unit == "" || r.Program == "" || r.Socket == "" || r.DataDir == "" || len(r.Components) == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	if want := len(part.Runtimes()); supported != want || supported == 0 {
		t.Errorf("%d supported runtimes are looked at, of %d", supported, want)
	}
}
