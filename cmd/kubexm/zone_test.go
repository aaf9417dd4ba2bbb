package main

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

// TestZoneOfTheEnvironment: KMZONE counts where nothing is written, and never changes
// which digest is expected.
func TestZoneOfTheEnvironment(t *testing.T) {
	for _, c := range []struct{ variable, written, want, pause string }{
		{"", "", "", "registry.k8s.io/pause:3.10"},
		{"cn", "", "cn", "m.daocloud.io/registry.k8s.io/pause:3.10"},
		{"", "cn", "cn", "m.daocloud.io/registry.k8s.io/pause:3.10"},
		{"us", "cn", "cn", "m.daocloud.io/registry.k8s.io/pause:3.10"},
		{"us", "", "error", ""},
	} {
		a := &app{env: func(name string) (string, bool) { return c.variable, name == "KMZONE" }}
		s := manifest.Sources{Zone: c.written}
		err := a.zone(&s)
		if c.want == "error" {
			if exitCode(t.Context(), err) != exitUsage {
				t.Errorf("%s: %v", c.variable, err)
			}
			continue
		}
		pause, _ := s.Rewrite("registry.k8s.io/pause:3.10")
		if err != nil || s.Zone != c.want || pause != c.pause {
			t.Errorf("%s, %s: zone %q, %s, %v", c.variable, c.written, s.Zone, pause, err)
		}
	}
}
