package manifest

// Network is the pod network and the address ranges.
type Network struct {
	// Plugin that connects the pods; none leaves it to you.
	Plugin string `yaml:"plugin,omitempty" default:"calico" enum:"calico|flannel|cilium|kube-ovn|hybridnet|none" built:"flannel|none" effect:"network=outage"`
	// Version of the plugin. Default: what the matrix holds for the Kubernetes version.
	Version string `yaml:"version,omitempty" format:"version" effect:"upgrade,network" install:"lock"`
	// KubePodsCIDR is the range of pod addresses: one, or one of each family.
	KubePodsCIDR []string `yaml:"kubePodsCIDR,omitempty" split:"," default:"10.233.64.0/18" format:"cidr" effect:"immutable=create,network"`
	// KubeServiceCIDR is the range of service addresses: one, or one of each family.
	KubeServiceCIDR []string `yaml:"kubeServiceCIDR,omitempty" split:"," default:"10.233.0.0/18" format:"cidr" effect:"immutable=create,network"`
	// IPPool is the plugin's way of handing out addresses.
	IPPool IPPool `yaml:"ippool,omitempty"`
	// Calico settings, for plugin calico.
	Calico Calico `yaml:"calico,omitempty"`
	// Flannel settings, for plugin flannel.
	Flannel Flannel `yaml:"flannel,omitempty"`
	// Multus gives pods further interfaces, beside any plugin.
	Multus Switch `yaml:"multus,omitempty" effect:"network"`
}

// IPPool is the plugin's way of handing out addresses.
type IPPool struct {
	// BlockSize is the prefix length of the IPv4 blocks that calico gives to nodes.
	BlockSize int `yaml:"blockSize,omitempty" default:"26" min:"20" max:"32" effect:"immutable=create,network"`
}

// Calico is the part of plugin calico.
type Calico struct {
	// IPIPMode of the IPv4 pool. Other than Never it needs vxlanMode Never.
	// Default: Always, and Never where vxlanMode is written and is not Never.
	IPIPMode string `yaml:"ipipMode,omitempty" enum:"Always|CrossSubnet|Never" effect:"network"`
	// VXLANMode of the IPv4 pool. Other than Never it needs ipipMode Never.
	VXLANMode string `yaml:"vxlanMode,omitempty" default:"Never" enum:"Always|CrossSubnet|Never" effect:"network"`
	// VethMTU is the MTU of the pods' interfaces in bytes; 0 finds it out.
	VethMTU int `yaml:"vethMTU,omitempty" default:"0" min:"0" max:"65535" effect:"network"`
}

// Flannel is the part of plugin flannel.
type Flannel struct {
	// Backend that carries the packets between nodes.
	Backend string `yaml:"backend,omitempty" default:"vxlan" enum:"vxlan|host-gw|wireguard" effect:"network"`
}

// Storage is what serves persistent volumes.
type Storage struct {
	// OpenEBS serves volumes from directories of the nodes.
	OpenEBS OpenEBS `yaml:"openebs,omitempty"`
}

// OpenEBS is the local volume provisioner. It is installed when this block is written.
type OpenEBS struct {
	// BasePath is the directory on each node that volumes are made in.
	BasePath string `yaml:"basePath,omitempty" format:"path" effect:"addons"`
}
