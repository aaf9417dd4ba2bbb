package part

import (
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// RegistryKind is where the nodes' images come from.
type RegistryKind int

// The kinds of registries.
const (
	NoRegistry       RegistryKind = iota // kubexm sends the images to each node
	OwnRegistry                          // kubexm installs a registry on the hosts of the role registry
	ExternalRegistry                     // an existing registry: kubexm pushes images and changes nothing else
)

// Registry is the registry that the nodes pull from.
type Registry struct {
	Kind    RegistryKind
	Hosts   []manifest.Host // that run it; none for an external registry
	Port    uint16          // in its name
	DataDir string          // on these hosts
	// Components are the components in the bundle for a registry that kubexm installs: first
	// the component that spec.registry.version refers to.
	Components []string
	// Containers means that the registry runs in Docker containers, independent of the runtime
	// of the nodes.
	Containers bool
}

// registries are the registries that kubexm installs, by spec.registry.type.
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

// RegistryOf returns the registry of a config.
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

// portOf returns the port in a registry's name; 443 without a port.
func portOf(name string) uint16 {
	_, port, _ := strings.Cut(name, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 443 // the default port of https
	}
	return uint16(n)
}
