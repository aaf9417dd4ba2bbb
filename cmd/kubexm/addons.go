package main

import (
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
)

// carriedOnly warns of them where a bundle is made: it can carry their images, and
// on the site nothing can be fetched any more.
func carriedOnly(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	ps := addonsWithout(c, l)
	for i := range ps {
		ps[i].Severity = manifest.Warning
		ps[i].Message += "; its images are carried"
	}
	return ps
}

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
