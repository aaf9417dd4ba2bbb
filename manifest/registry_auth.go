package manifest

import (
	"path"
	"strings"
)

// Auth says how a registry is spoken to; the zero RegistryAuth is as nobody, over
// TLS. The port of https may be written or not.
func (r Registry) Auth(host string) RegistryAuth {
	if a, ok := r.Auths[host]; ok {
		return a
	}
	if name, ok := strings.CutSuffix(host, ":443"); ok {
		return r.Auths[name]
	}
	return r.Auths[host+":443"]
}

// Namespaced gives the name that images in the registry begin with.
func (r Registry) Namespaced() string { return path.Join(r.PrivateRegistry, r.NamespaceOverride) }
