package site

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestChoicesAreRefused: of each field that can be installed with some values only,
// the others are refused, by what makes a cluster and by what deletes one.
func TestChoicesAreRefused(t *testing.T) {
	set := map[string]func(*manifest.Cluster, string){
		"spec.loadBalancer.external.type": func(c *manifest.Cluster, v string) { c.Spec.LoadBalancer.External.Type = v },
		"spec.loadBalancer.internal.type": func(c *manifest.Cluster, v string) { c.Spec.LoadBalancer.Internal.Type = v },
		"spec.kubernetes.type":            func(c *manifest.Cluster, v string) { c.Spec.Kubernetes.Type = v },
		"spec.runtime.type":               func(c *manifest.Cluster, v string) { c.Spec.Runtime.Type = v },
		"spec.network.plugin":             func(c *manifest.Cluster, v string) { c.Spec.Network.Plugin = v },
		"spec.registry.type":              func(c *manifest.Cluster, v string) { c.Spec.Registry.Type = strings.TrimPrefix(v, "none") },
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
			for _, p := range pipeline.All() {
				if refusesOwnStore(t, p) {
					continue
				}
				ps := UnsupportedBy(p, c, nil)
				if built := slices.Contains(choice.Supported, v); built != (len(ps) == 0) {
					t.Errorf("%s: %s: said to be built: %t, and %s says %v", choice.Path, v, built, p.Name, ps)
				}
			}
		}
	}
}

// TestRemovalIsNotRefused: a field that waits keeps nobody from taking away what is
// there: it did nothing when the cluster was made.
func TestRemovalIsNotRefused(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+"  monitoring: {enabled: true}\n")
	refused := map[string]bool{"create": true, "preflight": true, "prepare": true, "node-add": true, "delete": false, "reset": false, "restore": false}
	for _, p := range pipeline.All() {
		if refusesOwnStore(t, p) {
			continue
		}
		if ps := UnsupportedBy(p, c, nil); refused[p.Name] != (len(ps) > 0) {
			t.Errorf("%s: %v", p.Name, ps)
		}
	}
}

// refusesOwnStore tells of a pipeline that it is for another kind of etcd than that of Small, and
// holds it to saying so.
func refusesOwnStore(t *testing.T, p plan.Pipeline) bool {
	t.Helper()
	if p.UnsupportedFields == nil {
		return false
	}
	ps := p.UnsupportedFields(steptest.Cluster(t, steptest.Small))
	if len(ps) > 0 && (len(ps) > 1 || ps[0].Path != "spec.etcd.type" || ps[0].Advice == "") {
		t.Errorf("%s: %v", p.Name, ps)
	}
	return len(ps) > 0
}
