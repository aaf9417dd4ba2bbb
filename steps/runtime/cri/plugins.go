package cri

import (
	"path"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/op"
)

// names are the CNI plugins that the catalogue extracts from their archive.
var names = []string{
	"bandwidth", "bridge", "dhcp", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
	"portmap", "ptp", "sbr", "static", "tuning", "vlan", "vrf",
}

// Plugins returns the CNI plugins, in the folder in which every runtime searches for them.
func Plugins() []op.Resource {
	const dir = "/opt/cni/bin"
	rs := []op.Resource{op.Dir{Path: path.Dir(dir), Own: true}, op.Dir{Path: dir, Own: true}}
	for _, n := range names {
		rs = append(rs, op.Blob{Path: path.Join(dir, n), Need: manifest.Need{Kind: manifest.Binary, Name: "cni-plugins/" + n}})
	}
	return rs
}
