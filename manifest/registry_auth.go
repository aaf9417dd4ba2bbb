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

// PullAuth says how nodes speak to a registry: as Auth has it, with the login for
// pulling where the registry has one of its own.
func (r Registry) PullAuth(host string) RegistryAuth {
	a := r.Auth(host)
	if a.PullUsername != "" && r.Type == "external" && sameRegistry(r.PrivateRegistry, host) {
		a.Username, a.Password = a.PullUsername, a.PullPassword
	}
	return a
}

// PushPort is the port of the loopback address on the registry host where a
// registry that kubexm installs takes pushes: 5001, or 5002 where nodes pull at that.
func (r Registry) PushPort() int {
	if strings.HasSuffix(r.PrivateRegistry, ":5001") {
		return 5002
	}
	return 5001
}

// Namespaced gives the name that images in the registry begin with.
func (r Registry) Namespaced() string { return path.Join(r.PrivateRegistry, r.NamespaceOverride) }
