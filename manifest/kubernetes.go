package manifest

// Kubernetes says which version is installed, how, and with which settings.
type Kubernetes struct {
	// Type is the way of installing: kubeadm, or kubexm, which runs each
	// component as a service of the host.
	Type string `yaml:"type,omitempty" default:"kubeadm" enum:"kubeadm|kubexm" built:"kubeadm" effect:"immutable=create"`
	// Version of Kubernetes with its leading v, as in v1.33.1.
	Version string `yaml:"version,omitempty" required:"true" format:"kubernetesVersion" effect:"upgrade,apiserver,controller-manager,scheduler,kubelet,proxy"`
	// ClusterName is the DNS domain of services.
	ClusterName string `yaml:"clusterName,omitempty" default:"cluster.local" format:"hostname" effect:"immutable=create"`
	// APIServer settings.
	APIServer APIServer `yaml:"apiServer,omitempty" effect:"apiserver"`
	// ControllerManager settings.
	ControllerManager Component `yaml:"controllerManager,omitempty" effect:"controller-manager"`
	// Scheduler settings.
	Scheduler Component `yaml:"scheduler,omitempty" effect:"scheduler"`
	// Kubelet settings.
	Kubelet Kubelet `yaml:"kubelet,omitempty" effect:"kubelet"`
	// KubeProxy settings.
	KubeProxy KubeProxy `yaml:"kubeProxy,omitempty" effect:"proxy"`
	// Hardening is what of the settings that make a cluster hard to break into is
	// left out.
	Hardening Hardening `yaml:"hardening,omitempty"`
	// AutoRenewCerts installs a timer on the masters that renews the control
	// plane's certificates before they expire.
	AutoRenewCerts bool `yaml:"autoRenewCerts,omitempty" default:"false" effect:"timers=certs"`
	// MaxPods is the largest number of pods on one node.
	MaxPods int `yaml:"maxPods,omitempty" default:"110" min:"1" max:"65535" effect:"kubelet"`
	// PodPidsLimit is the largest number of processes in one pod.
	PodPidsLimit int64 `yaml:"podPidsLimit,omitempty" default:"10000" min:"1" effect:"kubelet"`
	// NodeCIDRMaskSize is the prefix length of the IPv4 range that one node takes out of the pod range.
	NodeCIDRMaskSize int `yaml:"nodeCidrMaskSize,omitempty" default:"24" min:"8" max:"30" effect:"immutable=create"`
	// NodeCIDRMaskSizeIPv6 is the prefix length of the IPv6 range that one node takes out of the pod range.
	// Default: 64, and eight more than the pod range's where that is longer, with room for maxPods.
	NodeCIDRMaskSizeIPv6 int `yaml:"nodeCidrMaskSizeIPv6,omitempty" min:"16" max:"128" effect:"immutable=create"`
	// FeatureGates switched on or off in every component. A gate that the
	// version no longer knows is left out, with a warning.
	FeatureGates map[string]bool `yaml:"featureGates,omitempty" effect:"apiserver,controller-manager,scheduler,kubelet,proxy"`
	// Kata runs pods in small virtual machines where they ask for it.
	Kata Switch `yaml:"kata,omitempty" effect:"runtime"`
	// NodeFeatureDiscovery labels nodes with what their hardware can do.
	NodeFeatureDiscovery Switch `yaml:"nodeFeatureDiscovery,omitempty" effect:"addons"`
}

// Switch turns a part on.
type Switch struct {
	// Enabled installs it.
	Enabled bool `yaml:"enabled,omitempty" default:"false"`
}

// Component is what every component of Kubernetes takes.
type Component struct {
	// ExtraArgs are further flags: a list of name=value, or a mapping.
	ExtraArgs Args `yaml:"extraArgs,omitempty"`
}

// APIServer is the part of the API servers.
type APIServer struct {
	Component `yaml:",inline"`
	// CertSANs are further IP addresses and DNS names in the serving certificate.
	CertSANs []string `yaml:"certSANs,omitempty" format:"host" effect:"apiserver=certificate"`
	// ServiceNodePortRange is the range of ports for services of type NodePort.
	ServiceNodePortRange string `yaml:"serviceNodePortRange,omitempty" default:"30000-32767" format:"portRange" effect:"apiserver"`
}

// Kubelet is the part of the kubelets.
type Kubelet struct {
	Component `yaml:",inline"`
	// CgroupDriver of kubelet and container runtime alike.
	CgroupDriver string `yaml:"cgroupDriver,omitempty" default:"systemd" enum:"systemd|cgroupfs" effect:"runtime,kubelet=drain"`
}

// KubeProxy is the part of kube-proxy.
type KubeProxy struct {
	Component `yaml:",inline"`
	// Mode in which services are served. Default: ipvs, and nftables from
	// Kubernetes 1.35 on, where ipvs is deprecated.
	Mode string `yaml:"mode,omitempty" enum:"iptables|ipvs|nftables" effect:"proxy"`
	// MasqueradeAll translates the source of all traffic to services.
	MasqueradeAll bool `yaml:"masqueradeAll,omitempty" default:"false" effect:"proxy"`
	// IPVS settings, for mode ipvs.
	IPVS IPVS `yaml:"ipvs,omitempty"`
}

// IPVS is kube-proxy's part in mode ipvs.
type IPVS struct {
	// ExcludeCIDRs are ranges whose rules kube-proxy leaves alone: the range of
	// the nodes where kube-vip is the internal load balancer. An address with a prefix
	// length stands for the range that it lies in.
	ExcludeCIDRs []string `yaml:"excludeCIDRs,omitempty" format:"addressRange" effect:"proxy"`
}

// Arg is one flag of a component, without its dashes.
type Arg struct {
	Name, Value string
}

// Args are flags of a component, in the order written. In the document they
// are a list of name=value, with or without leading dashes, a list of
// {name, value}, or a mapping.
type Args []Arg

// Runtime is the container runtime of every node.
type Runtime struct {
	// Type of the runtime. docker brings cri-dockerd; isulad comes as a package
	// of the operating system.
	Type string `yaml:"type,omitempty" default:"containerd" enum:"containerd|docker|cri-o|isulad" built:"containerd" effect:"immutable=join,runtime"`
	// Version of the runtime, without a leading v. Default: what the matrix
	// holds for the Kubernetes version.
	Version string `yaml:"version,omitempty" format:"version" effect:"upgrade,runtime" install:"lock"`
	// Containerd settings, for type containerd.
	Containerd Engine `yaml:"containerd,omitempty"`
	// Docker settings, for type docker and for a Harbor host.
	Docker Engine `yaml:"docker,omitempty"`
	// CRIO settings, for type cri-o.
	CRIO Engine `yaml:"cri-o,omitempty"`
	// Isulad settings, for type isulad.
	Isulad Engine `yaml:"isulad,omitempty"`
}

// Engine is what each container runtime takes.
type Engine struct {
	// RegistryMirrors are asked for images of docker.io first, in this order:
	// host[:port] or a whole address.
	RegistryMirrors []string `yaml:"registryMirrors,omitempty" format:"registry" effect:"runtime=files" install:"all"`
	// InsecureRegistries are spoken to without a checked certificate: host[:port];
	// without TLS, where a whole http:// address is written.
	InsecureRegistries []string `yaml:"insecureRegistries,omitempty" format:"registry" effect:"runtime=files" install:"add"`
	// DataDir holds images and containers. Default: the runtime's own,
	// /var/lib/containerd, /var/lib/docker, /var/lib/containers or /var/lib/isulad.
	DataDir string `yaml:"dataDir,omitempty" format:"path" effect:"immutable=join,runtime"`
}
