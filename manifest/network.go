package manifest

// Network is the pod network and the address ranges.
type Network struct {
	// Plugin is the network plugin (CNI); none installs no plugin.
	Plugin string `yaml:"plugin,omitempty" default:"calico" enum:"calico|flannel|cilium|kube-ovn|hybridnet|none" built:"calico|flannel|cilium|none" effect:"network=outage"`
	// Version of the plugin. Default: the version in the version matrix for
	// spec.kubernetes.version.
	Version string `yaml:"version,omitempty" format:"version" effect:"upgrade,network" install:"lock"`
	// KubePodsCIDR is the address range of pods: one range, or one IPv4 and one IPv6 range.
	KubePodsCIDR []string `yaml:"kubePodsCIDR,omitempty" split:"," default:"10.233.64.0/18" format:"cidr" effect:"immutable=create,network"`
	// KubeServiceCIDR is the address range of services: one range, or one IPv4 and one IPv6
	// range.
	KubeServiceCIDR []string `yaml:"kubeServiceCIDR,omitempty" split:"," default:"10.233.0.0/18" format:"cidr" effect:"immutable=create,network"`
	// IPPool holds settings of the plugin's address allocation.
	IPPool IPPool `yaml:"ippool,omitempty"`
	// Calico settings, for plugin calico.
	Calico Calico `yaml:"calico,omitempty"`
	// Flannel settings, for plugin flannel.
	Flannel Flannel `yaml:"flannel,omitempty"`
	// Values of the plugin's chart, as in Helm's values.yaml, for the plugins that have one: cilium,
	// kube-ovn and hybridnet. They are added to the values that kubexm sets, and have precedence over
	// them. They are stored in the bundle unencrypted: do not put secrets here.
	Values map[string]any `yaml:"values,omitempty" effect:"network"`
	// Multus gives pods additional network interfaces, with any plugin.
	Multus Switch `yaml:"multus,omitempty" effect:"network"`
}

// IPPool holds settings of the plugin's address allocation.
type IPPool struct {
	// BlockSize is the prefix length of the IPv4 blocks that calico allocates to nodes.
	BlockSize int `yaml:"blockSize,omitempty" default:"26" min:"20" max:"32" effect:"immutable=create,network"`
}

// Calico holds settings of the plugin calico.
type Calico struct {
	// IPIPMode of the IPv4 pool; IPv6 has no IPIP. Values other than Never require vxlanMode Never. Default:
	// Always; Never if vxlanMode is set to another value than Never.
	IPIPMode string `yaml:"ipipMode,omitempty" enum:"Always|CrossSubnet|Never" effect:"network"`
	// VXLANMode of the pools of both IP families. Values other than Never require ipipMode Never.
	VXLANMode string `yaml:"vxlanMode,omitempty" default:"Never" enum:"Always|CrossSubnet|Never" effect:"network"`
	// VethMTU is the MTU of the pods' interfaces in bytes; 0 detects it automatically.
	VethMTU int `yaml:"vethMTU,omitempty" default:"0" min:"0" max:"65535" effect:"network"`
}

// Flannel holds settings of the plugin flannel.
type Flannel struct {
	// Backend that forwards packets between nodes.
	Backend string `yaml:"backend,omitempty" default:"vxlan" enum:"vxlan|host-gw|wireguard" effect:"network"`
}

// Storage provides persistent volumes.
type Storage struct {
	// OpenEBS provides volumes from a folder of each node.
	OpenEBS OpenEBS `yaml:"openebs,omitempty"`
	// NFS provides volumes from folders of an existing NFS server, which all nodes share.
	NFS NFS `yaml:"nfs,omitempty"`
}

// NFS is the provisioner of volumes on an NFS server. It is installed if server is set.
type NFS struct {
	// Server is the IP address or the DNS name of the NFS server.
	Server string `yaml:"server,omitempty" format:"host" effect:"addons" install:"once"`
	// Path is the exported folder of the server in which volumes are created.
	Path string `yaml:"path,omitempty" format:"path" effect:"addons" install:"once"`
}

// OpenEBS is the provisioner of local volumes. It is installed if this mapping is present.
type OpenEBS struct {
	// BasePath is the folder on each node in which volumes are created. Default:
	// /var/openebs/local.
	BasePath string `yaml:"basePath,omitempty" format:"path" effect:"addons" install:"once"`
}
