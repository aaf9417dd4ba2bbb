package manifest

// validate holds the fields of c against each other. Each rule looks at sound
// fields alone, see there.
func (d *config) validate(c *Cluster) {
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
