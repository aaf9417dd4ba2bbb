package manifest

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateRegistry(c *Cluster) {
	r := c.Spec.Registry
	hosts := len(c.Spec.RoleGroups.Registry)
	if d.Sound("spec.registry.type", "spec.roleGroups.registry") {
		switch {
		case (r.Type == "registry" || r.Type == "harbor") && hosts == 0 && len(c.Spec.Hosts) > 0:
			d.Fail("spec.registry.type", "name a host in spec.roleGroups.registry", "is %s, and no host has the role registry", r.Type)
		case (r.Type == "external" || r.Type == "") && hosts > 0:
			d.Fail("spec.roleGroups.registry", "write spec.registry.type: registry or harbor, or take the host out", "names a host, and spec.registry.type installs nothing there")
		case r.Type == "external" && r.PrivateRegistry == "":
			d.Fail("spec.registry.privateRegistry", "write its name, as in images: host or host:port", "is missing, and spec.registry.type is external")
		}
		if d.Written("spec.registry.harborConfig") && r.Type != "harbor" {
			d.Warn("spec.registry.harborConfig", "write type: harbor, or leave it out", "means nothing where spec.registry.type is %s", orNothing(r.Type))
		}
	}
	if r.Type == "" && len(c.Spec.Hosts) > 0 {
		d.withoutRegistry(c)
	}
	if h := r.HarborConfig; h.HTTPPort == h.HTTPSPort && h.HTTPPort != 0 {
		d.Fail(d.firstWrittenOf("spec.registry.harborConfig.httpsPort", "spec.registry.harborConfig.httpPort"), "choose two ports", "httpPort and httpsPort are both %d", h.HTTPPort)
	}
	for host, a := range r.Auths {
		d.validateAuth(r, host, a)
	}
}

// withoutRegistry warns of what a site without a registry has no use for, and of what
// would need one.
func (d *config) withoutRegistry(c *Cluster) {
	for _, f := range []string{"version", "privateRegistry", "namespaceOverride", "registryDataDir"} {
		if at := "spec.registry." + f; d.Written(at) {
			d.Warn(at, "leave it out, or have a registry: spec.registry.type", "means nothing where there is no registry")
		}
	}
	for _, a := range c.Spec.Kubernetes.APIServer.ExtraArgs {
		if a.Name == "enable-admission-plugins" && strings.Contains(a.Value, "AlwaysPullImages") {
			d.Warn("spec.kubernetes.apiServer.extraArgs", "leave AlwaysPullImages out, or have a registry: spec.registry.type",
				"has AlwaysPullImages, and no pod starts where its image cannot be pulled: without a registry nodes have the images of the bundle alone")
		}
	}
}

// validateAuth looks at how one registry is spoken to.
func (d *config) validateAuth(r Registry, host string, a RegistryAuth) {
	at := document.Join("spec.registry.auths", host)
	installed := (r.Type == "registry" || r.Type == "harbor") && sameRegistry(r.PrivateRegistry, host)
	switch {
	case !isHostPort(host):
		d.Fail(at, "write host or host:port, without a scheme", "%q is no registry", document.Shown(host))
	case a.SkipTLSVerify && a.PlainHTTP:
		d.Fail(at, "choose one of the two", "has skipTLSVerify and plainHTTP")
	case (a.Username == "") != a.Password.IsZero() && d.Sound(at+".username", at+".password"):
		d.Fail(at, "write both, or neither", "has one of username and password")
	case (a.PullUsername == "") != a.PullPassword.IsZero() && d.Sound(at+".pullUsername", at+".pullPassword"):
		d.Fail(at, "write both, or neither", "has one of pullUsername and pullPassword")
	case a.PlainHTTP && a.CertsPath != "":
		d.Fail(at, "choose one of the two", "has plainHTTP and certsPath")
	case strings.ContainsAny(a.Username, ":\n"):
		d.Fail(at+".username", "write the name alone", "has a colon or a line break, and no registry can be told such a name")
	case strings.ContainsAny(a.PullUsername, ":\n"):
		d.Fail(at+".pullUsername", "write the name alone", "has a colon or a line break, and no registry can be told such a name")
	case installed && (a.SkipTLSVerify || a.PlainHTTP || a.CertsPath != ""):
		field := ".certsPath"
		switch {
		case a.SkipTLSVerify:
			field = ".skipTLSVerify"
		case a.PlainHTTP:
			field = ".plainHTTP"
		}
		d.Warn(at+field, "leave skipTLSVerify, plainHTTP and certsPath out", "the registry that kubexm installs is given a certificate of its own, which the nodes check")
	case !a.Password.IsZero() && a.PlainHTTP:
		d.Warn(at, "have the registry speak TLS, and name its CA with certsPath", "has a password and plainHTTP: whoever is on the network between reads the password and can replace images")
	case !a.Password.IsZero() && a.SkipTLSVerify:
		d.Warn(at, "name the registry's CA with certsPath, and leave skipTLSVerify out", "has a password and skipTLSVerify: whoever answers under this name gets the password and can replace images")
	}
	external := r.Type == "external" && sameRegistry(r.PrivateRegistry, host)
	switch {
	case a.PullUsername != "" && !external:
		d.Warn(at+".pullUsername", "leave pullUsername and pullPassword out", "means nothing here: only an external spec.registry.privateRegistry is both pushed to and pulled from")
	case a.PullUsername != "" && a.PullUsername == a.Username:
		d.Warn(at+".pullUsername", "name a user who can only pull", "is the user who pushes: root on any node can replace every image of the site")
	case a.Username != "" && a.PullUsername == "" && external:
		d.Warn(at, "make a user who can only pull, and write it as pullUsername and pullPassword", "the nodes log in as %s, who pushes the images: root on any node can replace every image of the site", document.Shown(a.Username))
	}
}

// sameRegistry tells whether two names mean one registry.
func sameRegistry(a, b string) bool {
	return strings.TrimSuffix(a, ":443") == strings.TrimSuffix(b, ":443")
}

func (d *config) validateAddons(c *Cluster) {
	seen := map[string]bool{}
	for i, a := range c.Spec.Addons {
		at := document.Indexed("spec.addons", i)
		key := a.Namespace + "/" + a.Name
		if seen[key] && a.Name != "" {
			d.Fail(at, "name it once, or give it another namespace", "%s stands twice", a.Name)
		}
		seen[key] = true
		if a.Type == "yaml" && len(a.Values) > 0 {
			d.Fail(at+".values", "write type: helm, or leave the values out", "are a chart's, and the type is yaml")
		}
		if a.Namespace != "" && a.Form() == File {
			d.Warn(at+".namespace", "write it into the objects of the manifest", "means nothing for a manifest")
		}
		if a.Type == "yaml" && strings.HasPrefix(a.Source, "oci://") {
			d.Fail(at+".source", "write type: helm", "is a chart's address, and the type is yaml")
		}
		if document.HasUser(a.Source) {
			d.Fail(at+".source", "keep credentials in docker's config file", "holds a user or a password, and would go into the bundle")
		}
		if scheme, _, ok := strings.Cut(a.Source, "://"); ok && !slices.Contains([]string{"https", "http", "oci"}, scheme) {
			d.Fail(at+".source", "write an https:// or oci:// address, or a path", "%s:// is no scheme that kubexm fetches from", document.Shown(scheme))
		}
	}
}

func (d *config) validateExtra(c *Cluster) {
	machines, seen := map[string]bool{"": true}, map[ExtraHost]bool{}
	for _, h := range c.Spec.Hosts {
		machines[h.Name] = true
	}
	for i, e := range c.Spec.Extra.Hosts {
		at := document.Indexed("spec.extra.hosts", i)
		switch {
		case e.Domain == "":
		case machines[e.Domain]:
			d.Fail(at, "choose another name", "%s is the name of a host", e.Domain)
		case seen[e]:
			d.Warn(at, "write it once", "%s with %s stands twice", e.Domain, e.Address)
		}
		seen[e] = true
	}
}
