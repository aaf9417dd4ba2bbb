package manifest

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateRegistry(c *Cluster) {
	r := c.Spec.Registry
	hosts := len(c.Spec.RoleGroups.Registry)
	if d.Valid("spec.registry.type", "spec.roleGroups.registry") {
		switch {
		case (r.Type == "registry" || r.Type == "harbor") && hosts == 0 && len(c.Spec.Hosts) > 0:
			d.Fail("spec.registry.type", "list a host in spec.roleGroups.registry", "is %s, but no host has the role registry", r.Type)
		case (r.Type == "external" || r.Type == "") && hosts > 0:
			d.Fail("spec.roleGroups.registry", "write spec.registry.type: registry or harbor, or remove the host", "lists a host, but spec.registry.type installs no registry")
		case r.Type == "external" && r.PrivateRegistry == "":
			d.Fail("spec.registry.privateRegistry", "write the registry's name in image references: host or host:port", "is required if spec.registry.type is external")
		}
		if d.Written("spec.registry.harborConfig") && r.Type != "harbor" {
			d.Warn("spec.registry.harborConfig", "write type: harbor, or leave it out", "has no effect if spec.registry.type is %s", orNothing(r.Type))
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

// withoutRegistry warns of settings that have no effect without a registry, and of settings
// that require one.
func (d *config) withoutRegistry(c *Cluster) {
	for _, f := range []string{"version", "privateRegistry", "namespaceOverride", "registryDataDir"} {
		if at := "spec.registry." + f; d.Written(at) {
			d.Warn(at, "leave it out, or configure a registry: spec.registry.type", "has no effect without a registry")
		}
	}
	for _, a := range c.Spec.Kubernetes.APIServer.ExtraArgs {
		if a.Name == "enable-admission-plugins" && strings.Contains(a.Value, "AlwaysPullImages") {
			d.Warn("spec.kubernetes.apiServer.extraArgs", "leave AlwaysPullImages out, or configure a registry: spec.registry.type",
				"has AlwaysPullImages: without a registry nodes cannot pull images, so that no pod starts")
		}
	}
}

// validateAuth checks the credentials and TLS settings of one registry.
func (d *config) validateAuth(r Registry, host string, a RegistryAuth) {
	at := document.Join("spec.registry.auths", host)
	installed := (r.Type == "registry" || r.Type == "harbor") && sameRegistry(r.PrivateRegistry, host)
	switch {
	case !isHostPort(host):
		d.Fail(at, "write host or host:port, without a scheme", "%q is not the name of a registry", document.Redact(host))
	case a.SkipTLSVerify && a.PlainHTTP:
		d.Fail(at, "choose one of the two", "has skipTLSVerify and plainHTTP")
	case (a.Username == "") != a.Password.IsZero() && d.Valid(at+".username", at+".password"):
		d.Fail(at, "write both, or neither", "has only one of username and password")
	case (a.PullUsername == "") != a.PullPassword.IsZero() && d.Valid(at+".pullUsername", at+".pullPassword"):
		d.Fail(at, "write both, or neither", "has only one of pullUsername and pullPassword")
	case a.PlainHTTP && a.CertsPath != "":
		d.Fail(at, "choose one of the two", "has plainHTTP and certsPath")
	case strings.ContainsAny(a.Username, ":\n"):
		d.Fail(at+".username", "write only the user name", "has a colon or a line break, which HTTP basic authentication does not allow")
	case strings.ContainsAny(a.PullUsername, ":\n"):
		d.Fail(at+".pullUsername", "write only the user name", "has a colon or a line break, which HTTP basic authentication does not allow")
	case installed && (a.SkipTLSVerify || a.PlainHTTP || a.CertsPath != ""):
		field := ".certsPath"
		switch {
		case a.SkipTLSVerify:
			field = ".skipTLSVerify"
		case a.PlainHTTP:
			field = ".plainHTTP"
		}
		d.Warn(at+field, "leave skipTLSVerify, plainHTTP and certsPath out", "the registry that kubexm installs gets its own certificate, which the nodes verify")
	case !a.Password.IsZero() && a.PlainHTTP:
		d.Warn(at, "enable TLS in the registry, and set its CA with certsPath", "has a password and plainHTTP: anyone on the network path can read the password and replace images")
	case !a.Password.IsZero() && a.SkipTLSVerify:
		d.Warn(at, "set the registry's CA with certsPath, and leave skipTLSVerify out", "has a password and skipTLSVerify: any server that answers under this name gets the password and can replace images")
	}
	external := r.Type == "external" && sameRegistry(r.PrivateRegistry, host)
	switch {
	case a.PullUsername != "" && !external:
		d.Warn(at+".pullUsername", "leave pullUsername and pullPassword out", "has no effect: separate pull credentials are for an external spec.registry.privateRegistry only")
	case a.PullUsername != "" && a.PullUsername == a.Username:
		d.Warn(at+".pullUsername", "specify a user with pull access only", "is also the user for pushes: root on any node can replace every image of the site")
	case a.Username != "" && a.PullUsername == "" && external:
		d.Warn(at, "create a user with pull access only, and set pullUsername and pullPassword", "the nodes log in as %s, the user for pushes: root on any node can replace every image of the site", document.Redact(a.Username))
	}
}

// sameRegistry reports whether two names refer to the same registry.
func sameRegistry(a, b string) bool {
	return strings.TrimSuffix(a, ":443") == strings.TrimSuffix(b, ":443")
}

func (d *config) validateAddons(c *Cluster) {
	implied := map[string]string{
		"openebs":                choose(c.Spec.Storage.OpenEBS.BasePath != "", "spec.storage.openebs"),
		"nfs-provisioner":        choose(c.Spec.Storage.NFS.Server != "", "spec.storage.nfs"),
		"node-feature-discovery": choose(c.Spec.Kubernetes.NodeFeatureDiscovery.Enabled, "spec.kubernetes.nodeFeatureDiscovery"),
	}
	seen := map[string]bool{}
	for i, a := range c.Spec.Addons {
		at := document.Indexed("spec.addons", i)
		key := a.Namespace + "/" + a.Name
		if seen[key] && a.Name != "" {
			d.Fail(at, "list it once, or set another namespace", "%s is listed twice", a.Name)
		}
		seen[key] = true
		if field := implied[a.Name]; field != "" {
			d.Fail(at, "leave one of the two out", "%s already installs %s", field, a.Name)
		} else if a.Name == "openebs" && a.Source == "" {
			d.Fail(at, "write spec.storage.openebs.basePath, or the chart's source here", "openebs is not installed as an add-on of the version matrix")
		}
		if a.Name == "nfs-provisioner" && a.Source == "" && implied[a.Name] == "" {
			d.Fail(at, "write spec.storage.nfs with server and path, or the chart's source here", "nfs-provisioner is not installed as an add-on of the version matrix")
		}
		if a.Name == "metrics-server" && a.Source == "" && !c.KubeletsAreSigned() {
			d.Fail(at, "let the CA sign them: remove "+RelaxKubeletCertificates+" from spec.kubernetes.hardening.relax; or write the chart's source, and its argument --kubelet-insecure-tls in values",
				"metrics-server verifies the kubelets' certificates, which the cluster's CA does not sign here")
		}
		if a.Type == "yaml" && len(a.Values) > 0 {
			d.Fail(at+".values", "write type: helm, or leave the values out", "are for charts, but the type is yaml")
		}
		if a.Namespace != "" && a.Form() == File {
			d.Warn(at+".namespace", "write it into the objects of the manifest", "has no effect for a manifest")
		}
		if a.Type == "yaml" && strings.HasPrefix(a.Source, "oci://") {
			d.Fail(at+".source", "write type: helm", "is the address of a chart, but the type is yaml")
		}
		if document.HasUser(a.Source) {
			d.Fail(at+".source", "keep credentials in docker's config file", "contains a user or a password, which would be stored in the bundle")
		}
		if scheme, _, ok := strings.Cut(a.Source, "://"); ok && !slices.Contains([]string{"https", "http", "oci"}, scheme) {
			d.Fail(at+".source", "write an https:// or oci:// address, or a path", "kubexm does not support the scheme %s://", document.Redact(scheme))
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
			d.Warn(at, "write it once", "%s with %s is listed twice", e.Domain, e.Address)
		}
		seen[e] = true
	}
}
