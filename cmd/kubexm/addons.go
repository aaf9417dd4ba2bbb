package main

import (
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
)

// addonsWithout names the add-ons whose manifest l does not hold: the version
// matrix knows of some their images alone.
func addonsWithout(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	var ps manifest.Problems
	for i, a := range c.Spec.Addons {
		need := manifest.Need{Kind: manifest.File, Name: a.Name, Set: c.Spec.Kubernetes.Version}
		if _, err := l.File(need, manifest.Platform{}); a.Source != "" || err == nil && a.Form() != manifest.Chart {
			continue
		}
		p := manifest.Problem{
			Path: fmt.Sprintf("spec.addons[%d]", i), Message: a.Name + " cannot be installed yet: the version matrix holds no manifest of it",
			Advice: "name its chart or manifest in source",
		}
		if a.Form() == manifest.Chart {
			p.Message = a.Name + " cannot be installed as a chart: the version matrix holds none of it"
		}
		ps = append(ps, p)
	}
	return ps
}
