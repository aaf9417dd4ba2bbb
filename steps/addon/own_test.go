package addon_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite what testdata holds")

// TestOwnManifestsKeepTheirLaws: those of which the matrix has no manifest are installed and removed as
// the others are.
func TestOwnManifestsKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, strings.Replace(steptest.Small, "{version: v1.34.10}", "{version: v1.34.10, nodeFeatureDiscovery: {enabled: true}}", 1)+"  storage: {openebs: {}, nfs: {server: 192.0.2.99, path: /srv/volumes}}\n  addons: [metrics-server]\n")
	for _, a := range part.Addons(c) {
		t.Run(a.Name, func(t *testing.T) {
			if !part.HasOwnManifest(a) {
				t.Fatal("it has none")
			}
			kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
			steptest.Ensure(t, kase, addon.Install(a, nil), addon.Remove(a))
		})
	}
}

// TestOwnManifests compares the objects that are applied with those in testdata.
func TestOwnManifests(t *testing.T) {
	for name, more := range map[string]string{
		"openebs":                "  storage: {openebs: {basePath: /data/volumes}}\n",
		"nfs-provisioner":        "  storage: {nfs: {server: nas.site.example, path: '/srv/a b'}}\n",
		"openebs-beside":         "  storage: {openebs: {}}\n  addons: [longhorn]\n",
		"node-feature-discovery": "  addons: [node-feature-discovery]\n",
		"metrics-server":         "  addons: [metrics-server]\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, steptest.Small+more)
			a := part.Addons(c)[0]
			kase, step := steptest.Case{Cluster: c}, addon.Install(a, nil)
			got, err := addon.OwnManifest(a.Name)(t.Context(), kase.NewHost(t, kase.Sim(t), step))
			if err != nil {
				t.Fatal(err)
			}
			steptest.Golden(t, *update, name+".yaml", string(got))
		})
	}
}

// TestOwnManifestsAreOfTheMatrix: an add-on with a source of its own is that.
func TestOwnManifestsAreOfTheMatrix(t *testing.T) {
	for want, all := range map[bool][]manifest.Addon{
		true:  {{Name: "metrics-server"}, {Name: "metrics-server", Version: "v0.7.2"}, {Name: "openebs"}},
		false: {{Name: "metrics-server", Source: "https://charts.example"}, {Name: "metrics-server", Values: map[string]any{"a": 1}}, {Name: "metallb"}},
	} {
		for _, a := range all {
			if part.HasOwnManifest(a) != want {
				t.Errorf("%+v: not %v", a, want)
			}
		}
	}
}
