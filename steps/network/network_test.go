package network_test

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/network"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestOfKnowsWhatIsSupported: a row of manifest/part that says so has steps, and no
// other plugin has.
func TestOfKnowsWhatIsSupported(t *testing.T) {
	supported := 0
	root := manifest.ConfigFields()
	field, _ := root.Find("spec.network.plugin")
	for _, plugin := range field.Enum {
		c := steptest.Cluster(t, steptest.Small)
		c.Spec.Network.Plugin = plugin
		row := part.NetworkOf(c)
		if got := len(network.Of(c, nil).Install) > 0; got != row.Supported {
			t.Errorf("%s: supported is %t, and there are steps: %t", plugin, row.Supported, got)
		}
		if row.Supported {
			supported++
		}
	}
	if want := len(part.Networks()); supported != want || supported == 0 {
		t.Errorf("%d supported plugins are looked at, of %d", supported, want)
	}
}
