package manifest

import "fmt"

// validate holds the fields of c against each other. Each rule looks at sound
// fields alone, see there.
func (d *document) validate(c *Cluster) {
	d.validateHosts(c)
	d.validateRoles(c)
	d.validateEndpoint(c)
	d.validateEtcd(c)
	d.validateRanges(c)
	d.directAddress(c)
	d.validateKubernetes(c)
	d.validateRuntime(c)
	d.validateRegistry(c)
	d.validateAddons(c)
	d.validateExtra(c)
	d.validateSystem(c)
	d.validateBundle(c)
	d.validateSources(c.Spec.Sources, "spec.sources")
}

// fail reports an error at the place of path, unless there is one already: the
// first is the cause, the second at best says it in other words.
func (d *document) fail(path, advice, format string, args ...any) {
	if d.sound(path) {
		d.add(Error, d.nearestPlace(path), path, fmt.Sprintf(format, args...), advice)
	}
}

// warn reports a warning at the place of path.
func (d *document) warn(path, advice, format string, args ...any) {
	if d.sound(path) {
		d.add(Warning, d.nearestPlace(path), path, fmt.Sprintf(format, args...), advice)
	}
}

func choose(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

func orNothing(s string) string {
	if s == "" {
		return "not written"
	}
	return s
}
