package manifest

// Kubernetes is the Kubernetes version, how it is installed, and its settings.
type Kubernetes struct {
	// Type of installation: kubeadm, or kubexm, which runs each component as a service of the
	// host.
	Type string `yaml:"type,omitempty" default:"kubeadm" enum:"kubeadm|kubexm" built:"kubeadm" effect:"immutable=create"`
	// Version of Kubernetes with its leading v, for example v1.33.1.
	Version string `yaml:"version,omitempty" required:"true" format:"kubernetesVersion" effect:"upgrade,apiserver,controller-manager,scheduler,kubelet,proxy"`
	// ClusterName is the DNS domain of the cluster's services.
	ClusterName string `yaml:"clusterName,omitempty" default:"cluster.local" format:"hostname" effect:"immutable=create"`
	// APIServer holds settings of kube-apiserver.
	APIServer APIServer `yaml:"apiServer,omitempty" effect:"apiserver"`
	// ControllerManager holds settings of kube-controller-manager.
	ControllerManager Component `yaml:"controllerManager,omitempty" effect:"controller-manager"`
	// Scheduler holds settings of kube-scheduler.
	Scheduler Component `yaml:"scheduler,omitempty" effect:"scheduler"`
	// Kubelet holds settings of the kubelets.
	Kubelet Kubelet `yaml:"kubelet,omitempty" effect:"kubelet"`
	// KubeProxy holds settings of kube-proxy.
	KubeProxy KubeProxy `yaml:"kubeProxy,omitempty" effect:"proxy"`
	// Hardening relaxes the security settings of the cluster. All settings in
	// docs/reference/hardening.md are enabled by default. A flag in the extraArgs of a component
	// overrides a single setting.
	Hardening Hardening `yaml:"hardening,omitempty"`
	// AutoRenewCerts installs a timer on the masters that renews the control plane's
	// certificates before they expire.
	AutoRenewCerts bool `yaml:"autoRenewCerts,omitempty" default:"false" effect:"timers=certs"`
	// MaxPods is the maximum number of pods on one node.
	MaxPods int `yaml:"maxPods,omitempty" default:"110" min:"1" max:"65535" effect:"kubelet"`
	// PodPidsLimit is the maximum number of processes in one pod.
	PodPidsLimit int64 `yaml:"podPidsLimit,omitempty" default:"10000" min:"1" effect:"kubelet"`
	// NodeCIDRMaskSize is the prefix length of the IPv4 pod range of one node, a part of
	// spec.network.kubePodsCIDR.
	NodeCIDRMaskSize int `yaml:"nodeCidrMaskSize,omitempty" default:"24" min:"8" max:"30" effect:"immutable=create"`
	// NodeCIDRMaskSizeIPv6 is the prefix length of the IPv6 pod range of one node, a part of
	// spec.network.kubePodsCIDR. Default: 64, or the prefix length of the IPv6 pod range plus 8
	// if that is larger; smaller if maxPods would not fit.
	NodeCIDRMaskSizeIPv6 int `yaml:"nodeCidrMaskSizeIPv6,omitempty" min:"16" max:"128" effect:"immutable=create"`
	// FeatureGates that are enabled (true) or disabled (false) in every component. A gate
	// that the Kubernetes version no longer supports is left out, with a warning.
	FeatureGates map[string]bool `yaml:"featureGates,omitempty" effect:"apiserver,controller-manager,scheduler,kubelet,proxy"`
	// Kata installs Kata Containers: pods that request it run in lightweight virtual machines.
	Kata Switch `yaml:"kata,omitempty" effect:"runtime"`
	// NodeFeatureDiscovery labels nodes with the features of their hardware.
	NodeFeatureDiscovery Switch `yaml:"nodeFeatureDiscovery,omitempty" effect:"addons" install:"once"`
}

// Switch enables an optional part of the cluster.
type Switch struct {
	// Enabled installs this part.
	Enabled bool `yaml:"enabled,omitempty" default:"false"`
}

// Component holds the settings that all Kubernetes components share.
type Component struct {
	// ExtraArgs are additional flags of the component: a list of name=value, or a mapping.
	ExtraArgs Args `yaml:"extraArgs,omitempty"`
}

// APIServer holds settings of kube-apiserver.
type APIServer struct {
	Component `yaml:",inline"`
	// CertSANs are additional subject alternative names (IP addresses and DNS names) in the
	// API server's certificate.
	CertSANs []string `yaml:"certSANs,omitempty" format:"host" effect:"apiserver=certificate"`
	// ServiceNodePortRange is the port range for services of type NodePort.
	ServiceNodePortRange string `yaml:"serviceNodePortRange,omitempty" default:"30000-32767" format:"portRange" effect:"apiserver"`
}

// Kubelet holds settings of the kubelets.
type Kubelet struct {
	Component `yaml:",inline"`
	// CgroupDriver of the kubelet and of the container runtime.
	CgroupDriver string `yaml:"cgroupDriver,omitempty" default:"systemd" enum:"systemd|cgroupfs" effect:"runtime,kubelet=drain"`
}

// KubeProxy holds settings of kube-proxy.
type KubeProxy struct {
	Component `yaml:",inline"`
	// Mode is kube-proxy's proxy mode. Default: ipvs; nftables from Kubernetes 1.35 on, where
	// ipvs is deprecated.
	Mode string `yaml:"mode,omitempty" enum:"iptables|ipvs|nftables" effect:"proxy"`
	// MasqueradeAll applies source NAT to all traffic to service addresses.
	MasqueradeAll bool `yaml:"masqueradeAll,omitempty" default:"false" effect:"proxy"`
	// IPVS settings, for mode ipvs.
	IPVS IPVS `yaml:"ipvs,omitempty"`
}

// IPVS holds settings of kube-proxy for mode ipvs.
type IPVS struct {
	// ExcludeCIDRs are address ranges whose IPVS rules kube-proxy does not clean up. kube-vip
	// as the internal load balancer creates no such rules. An address with a prefix length
	// means the range that contains it.
	ExcludeCIDRs []string `yaml:"excludeCIDRs,omitempty" format:"addressRange" effect:"proxy"`
}

// Arg is one flag of a component, without leading dashes.
type Arg struct {
	Name, Value string
}

// Args are flags of a component, in the order of the document. A document can contain a list
// of name=value with or without leading dashes, a list of {name, value}, or a mapping.
type Args []Arg

// Runtime is the container runtime of every node.
type Runtime struct {
	// Type of the runtime. docker includes cri-dockerd; isulad is installed as a package of
	// the operating system.
	Type string `yaml:"type,omitempty" default:"containerd" enum:"containerd|docker|cri-o|isulad" built:"containerd" effect:"immutable=join,runtime"`
	// Version of the runtime, without a leading v. Default: the version in the version matrix
	// for spec.kubernetes.version.
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

// Engine holds the settings that all container runtimes share.
type Engine struct {
	// RegistryMirrors are mirrors of docker.io, which are tried before it and after the site's
	// registry, in this order: host[:port] or a complete URL.
	RegistryMirrors []string `yaml:"registryMirrors,omitempty" format:"registry" effect:"runtime=files" install:"all"`
	// InsecureRegistries are registries whose TLS certificate is not verified: host[:port].
	// Write a complete http:// URL for a registry without TLS.
	InsecureRegistries []string `yaml:"insecureRegistries,omitempty" format:"registry" effect:"runtime=files" install:"add"`
	// DataDir is the directory of images and containers. Default: the runtime's own,
	// /var/lib/containerd, /var/lib/docker, /var/lib/containers or /var/lib/isulad.
	DataDir string `yaml:"dataDir,omitempty" format:"path" effect:"immutable=join,runtime"`
}
