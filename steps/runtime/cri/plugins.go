package cri

import (
	"path"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/op"
)

// names are the CNI plugins that the catalogue takes out of their archive.
var names = []string{
	"bandwidth", "bridge", "dhcp", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
	"portmap", "ptp", "sbr", "static", "tuning", "vlan", "vrf",
}

// Plugins are the CNI plugins, where every runtime looks for them.
func Plugins() []op.Resource {
	const dir = "/opt/cni/bin"
	rs := []op.Resource{op.Dir{Path: path.Dir(dir), Own: true}, op.Dir{Path: dir, Own: true}}
	for _, n := range names {
		rs = append(rs, op.Blob{Path: path.Join(dir, n), Need: manifest.Need{Kind: manifest.Binary, Name: "cni-plugins/" + n}})
	}
	return rs
}
