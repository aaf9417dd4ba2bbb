package manifest

import "slices"

func (d *document) validateSystem(c *Cluster) {
	for i, what := range c.Spec.System.Keep {
		if slices.Contains(c.Spec.System.Keep[:i], what) {
			d.warn(indexed("spec.system.keep", i), "write it once", "%s stands twice", what)
		}
	}
}
