package part

import (
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// RegistryKind says where the nodes' images come from.
type RegistryKind int

// The kinds of registries.
const (
	NoRegistry       RegistryKind = iota // each node is sent them
	OwnRegistry                          // kubexm installs one on the hosts of the role registry
	ExternalRegistry                     // one exists already: it is filled, and left as it is otherwise
)

// Registry is where the nodes pull from.
type Registry struct {
	Kind    RegistryKind
	Hosts   []manifest.Host // that run it; none of an external one
	Port    uint16          // of its name
	DataDir string          // on these hosts
	// Components are what the bundle has for one of kubexm's own: the one that
	// spec.registry.version is the version of, and those beside it.
	Components []string
	// Containers: it runs in containers of Docker on its hosts, whatever the nodes run.
	Containers bool
}

// registries are the rows of those that kubexm installs, by spec.registry.type.
func registries() map[string]Registry {
	return map[string]Registry{
		"registry": {Components: []string{"registry"}},
		"harbor":   {Components: []string{"harbor", Docker, "docker-compose"}, Containers: true},
	}
}

func registryKind(c *manifest.Cluster) RegistryKind {
	switch c.Spec.Registry.Type {
	case "":
		return NoRegistry
	case "external":
		return ExternalRegistry
	}
	return OwnRegistry
}

// RegistryOf gives the registry of a config.
func RegistryOf(c *manifest.Cluster) Registry {
	r := registries()[c.Spec.Registry.Type]
	r.Kind, r.Hosts = registryKind(c), RegistryHosts.Hosts(c)
	if r.Kind != NoRegistry {
		r.Port = portOf(c.Spec.Registry.PrivateRegistry)
	}
	if r.Kind == OwnRegistry {
		r.DataDir = c.Spec.Registry.RegistryDataDir
	}
	return r
}

// portOf is the port in a registry's name.
func portOf(name string) uint16 {
	_, port, _ := strings.Cut(name, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 443 // what https means without a port
	}
	return uint16(n)
}
