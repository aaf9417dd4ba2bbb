package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// unsupportedAddons names the add-ons that no pipeline can install yet: charts,
// and manifests that no bundle carries.
func unsupportedAddons(c *manifest.Cluster) manifest.Problems {
	var ps manifest.Problems
	for i, a := range c.Spec.Addons {
		web := strings.HasPrefix(a.Source, "https://") || strings.HasPrefix(a.Source, "http://")
		ext := path.Ext(a.Source)
		at := fmt.Sprintf("spec.addons[%d]", i)
		switch {
		case a.Type == "helm", len(a.Values) > 0, strings.HasPrefix(a.Source, "oci://"):
			ps = append(ps, manifest.Problem{Path: at, Message: a.Name + " is a chart, which cannot be installed yet", Advice: "name the address of a manifest in source, and write type: yaml"})
		case a.Source != "" && !web:
			ps = append(ps, manifest.Problem{Path: at + ".source", Message: "a manifest from a path cannot be carried yet", Advice: "serve the file where the bundle is built, and name its address"})
		case a.Source != "" && a.Type == "" && ext != ".yaml" && ext != ".yml":
			ps = append(ps, manifest.Problem{Path: at + ".source", Message: "is taken for a chart, which cannot be installed yet", Advice: "write type: yaml where it is a manifest"})
		}
	}
	return ps
}

// addonsWithout names the add-ons whose manifest l does not hold: the version
// matrix knows of some their images alone.
func addonsWithout(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	var ps manifest.Problems
	for i, a := range c.Spec.Addons {
		need := manifest.Need{Kind: manifest.File, Name: a.Name, Set: c.Spec.Kubernetes.Version}
		if _, err := l.File(need, manifest.Platform{}); a.Source == "" && err != nil {
			ps = append(ps, manifest.Problem{
				Path: fmt.Sprintf("spec.addons[%d]", i), Message: a.Name + " cannot be installed yet: the version matrix holds no manifest of it",
				Advice: "name the address of its manifest in source, with type: yaml",
			})
		}
	}
	return ps
}
