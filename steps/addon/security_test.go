package addon_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestNamespacesOfTheMatrix: an add-on of the matrix brings the level that its namespace
// needs; what its manifest says already stays, and so does whatever a config names.
func TestNamespacesOfTheMatrix(t *testing.T) {
	const bare = "apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: space}\n"
	labelled := strings.Replace(bare, "{name: space}", "{name: space, labels: {pod-security.kubernetes.io/enforce: baseline, of: theirs}}", 1)
	for name, c := range map[string]struct {
		addon manifest.Addon
		text  string
		want  string
	}{
		"longhorn":                   {manifest.Addon{Name: "longhorn"}, bare, "privileged"},
		"metallb, without its label": {manifest.Addon{Name: "metallb"}, bare, "privileged"},
		"one that has a level":       {manifest.Addon{Name: "longhorn"}, labelled, "baseline"},
		"labels without a value":     {manifest.Addon{Name: "longhorn"}, strings.Replace(bare, "{name: space}", "{name: space, labels: }", 1), "privileged"},
		"one that needs none":        {manifest.Addon{Name: "ingress-nginx"}, bare, ""},
		"one that the config names":  {manifest.Addon{Name: "longhorn", Source: "https://files.example/longhorn.yaml"}, bare, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := steptest.Cluster(t, steptest.Small)
			kube, sims := steptest.ExistingKubeWith(t, cluster)
			k := steptest.Case{Cluster: cluster, Artifacts: steptest.Artifacts{Text: map[string]string{c.addon.Name: c.text}}}
			install := addon.Install(c.addon, nil)
			if err := install.Run(t.Context(), k.NewHost(t, sims["node1"], install)); err != nil {
				t.Fatal(err)
			}
			metadata, _ := kube.Object("v1", "Namespace", "", "space")["metadata"].(map[string]any)
			labels, _ := metadata["labels"].(map[string]any)
			got, _ := labels["pod-security.kubernetes.io/enforce"].(string)
			if got != c.want || kube.Object("v1", "ConfigMap", "space", "settings") == nil {
				t.Errorf("the namespace has %v", metadata)
			}
		})
	}
}
