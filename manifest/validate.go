package manifest

// validate checks the fields of c against each other. Rules skip fields that already have an
// error; see Document.Valid.
func (d *config) validate(c *Cluster) {
	d.validateHosts(c)
	d.validateRoles(c)
	d.validateEndpoint(c)
	d.validateEtcd(c)
	d.validateRanges(c)
	d.directAddress(c)
	d.validateMultus(c)
	d.validateDNS(c)
	d.validateKubernetes(c)
	d.validateRuntime(c)
	d.validateRegistry(c)
	d.validateAddons(c)
	d.validateStorage(c)
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
		return "not set"
	}
	return s
}
