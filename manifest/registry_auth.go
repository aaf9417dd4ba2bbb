package manifest

import (
	"path"
	"strings"
)

// Auth returns the credentials and TLS settings of a registry. The zero RegistryAuth means
// anonymous access over TLS. Hosts match with or without port 443.
func (r Registry) Auth(host string) RegistryAuth {
	if a, ok := r.Auths[host]; ok {
		return a
	}
	if name, ok := strings.CutSuffix(host, ":443"); ok {
		return r.Auths[name]
	}
	return r.Auths[host+":443"]
}

// PullAuth returns the credentials and TLS settings that nodes pull with: those of Auth, with
// the pull credentials if the registry has separate ones.
func (r Registry) PullAuth(host string) RegistryAuth {
	a := r.Auth(host)
	if a.PullUsername != "" && r.Type == "external" && sameRegistry(r.PrivateRegistry, host) {
		a.Username, a.Password = a.PullUsername, a.PullPassword
	}
	return a
}

// PushPort returns the port of the loopback address on the registry host at which a registry
// that kubexm installs accepts pushes: 5001, or 5002 if nodes pull from 5001.
func (r Registry) PushPort() int {
	if strings.HasSuffix(r.PrivateRegistry, ":5001") {
		return 5002
	}
	return 5001
}

// Namespaced returns the prefix of the names of all images in the registry.
func (r Registry) Namespaced() string { return path.Join(r.PrivateRegistry, r.NamespaceOverride) }
