package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestUnsupportedIsWhatTheConfigSays: what validation says of values that cannot
// be installed is what installing refuses, no more and no less.
func TestUnsupportedIsWhatTheConfigSays(t *testing.T) {
	if err := unsupported(steptest.Cluster(t, steptest.Small)); err != nil {
		t.Fatal(err)
	}
	set := map[string]func(*manifest.Cluster, string){
		"spec.kubernetes.type": func(c *manifest.Cluster, v string) { c.Spec.Kubernetes.Type = v },
		"spec.runtime.type":    func(c *manifest.Cluster, v string) { c.Spec.Runtime.Type = v },
		"spec.network.plugin":  func(c *manifest.Cluster, v string) { c.Spec.Network.Plugin = v },
		"spec.registry.type":   func(c *manifest.Cluster, v string) { c.Spec.Registry.Type = strings.TrimPrefix(v, "none") },
	}
	root := manifest.ConfigFields()
	for _, choice := range manifest.Choices() {
		field, ok := root.Find(choice.Path)
		if !ok || set[choice.Path] == nil {
			t.Errorf("%s is not tried here", choice.Path)
			continue
		}
		for _, v := range field.Enum {
			c := steptest.Cluster(t, steptest.Small)
			set[choice.Path](c, v)
			err := unsupported(c)
			if built := slices.Contains(choice.Built, v); built != (err == nil) {
				t.Errorf("%s: %s: said to be built: %t, and installing says %v", choice.Path, v, built, err)
			}
		}
	}
}

// TestPartsThatCannotBeInstalled: a part that a bundle carries and no pipeline
// installs is refused, and not left out in silence.
func TestPartsThatCannotBeInstalled(t *testing.T) {
	on := true
	for path, set := range map[string]func(*manifest.Cluster){
		"spec.network.multus.enabled":   func(c *manifest.Cluster) { c.Spec.Network.Multus.Enabled = true },
		"spec.storage.openebs":          func(c *manifest.Cluster) { c.Spec.Storage.OpenEBS.BasePath = "/data" },
		"spec.dns.nodelocaldns.enabled": func(c *manifest.Cluster) { c.Spec.DNS.NodeLocalDNS.Enabled = &on },
		"spec.loadBalancer.mode":        func(c *manifest.Cluster) { c.Spec.LoadBalancer.Mode = "internal" },
	} {
		c := steptest.Cluster(t, steptest.Small)
		set(c)
		if err := unsupported(c); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
