package manifest

// ClusterKind is the kind of a cluster config.
const ClusterKind = "Cluster"

// Cluster describes one Kubernetes cluster, and the bundle with everything that is needed to
// install it.
//
// Decode reads it. Struct tags hold what the decoder, the schema and `kubexm config explain`
// share:
//   - default: the value of a field that is not set
//   - enum: the allowed values; built: those of them that can be installed
//   - min, max: the bounds of a number
//   - format: the format of a text, see formats.go
//   - scalar: the field that a plain value in place of the mapping sets
//   - split: the separator at which a plain value is split into a list
//   - effect: what a change of the field requires, see effect.go. Every field has one.
//   - install: what install does with a change, see effect_install.go
type Cluster struct {
	// APIVersion is the version of the document's format.
	APIVersion string `yaml:"apiVersion" required:"true" enum:"kubexm.mensylisir.io/v1alpha1" effect:"tool"`
	// Kind is always Cluster.
	Kind string `yaml:"kind" required:"true" enum:"Cluster" effect:"tool"`
	// Metadata names the cluster.
	Metadata Metadata `yaml:"metadata,omitempty"`
	// Spec is the desired state of the cluster and of its bundle.
	Spec Spec `yaml:"spec,omitempty"`

	public []byte            // the result of Public for a decoded Cluster
	values map[int]writtenAt // for problems that are found in charts' values later
}

// Metadata names a cluster.
type Metadata struct {
	// Name of the cluster: lower-case letters, digits and dashes, at most 63 characters. The
	// cluster's folder in the workdir and the bundle's file are named after it.
	Name string `yaml:"name,omitempty" required:"true" format:"label" effect:"immutable=create"`
}

// Spec is the desired state of a cluster and of its bundle.
type Spec struct {
	// Hosts are the machines of the cluster, which kubexm reaches by SSH. The workdir host
	// (the machine that runs kubexm) is never one of them. A config that is only used to
	// build a bundle needs no hosts.
	Hosts []Host `yaml:"hosts,omitempty" effect:"nodes" install:"new"`
	// SSH is the login for all hosts. A host can override each field.
	SSH SSH `yaml:"ssh,omitempty"`
	// RoleGroups assigns roles to hosts, by name. A name can contain a range: node[5:7] means
	// node5, node6 and node7; node[08:10] means node08, node09 and node10.
	RoleGroups RoleGroups `yaml:"roleGroups,omitempty"`
	// ControlPlaneEndpoint is the name, address and port at which clients reach the API
	// servers.
	ControlPlaneEndpoint ControlPlaneEndpoint `yaml:"controlPlaneEndpoint,omitempty"`
	// LoadBalancer is the load balancer in front of the API servers.
	LoadBalancer LoadBalancer `yaml:"loadBalancer,omitempty"`
	// System holds operating system settings of every host.
	System System `yaml:"system,omitempty"`
	// Kubernetes is the Kubernetes version, how it is installed, and its settings.
	Kubernetes Kubernetes `yaml:"kubernetes,omitempty"`
	// Runtime is the container runtime of every node.
	Runtime Runtime `yaml:"runtime,omitempty"`
	// Etcd is the etcd cluster that stores the Kubernetes objects.
	Etcd Etcd `yaml:"etcd,omitempty"`
	// Network is the pod network and the address ranges.
	Network Network `yaml:"network,omitempty"`
	// Storage provides persistent volumes.
	Storage Storage `yaml:"storage,omitempty"`
	// Registry is the image registry at the site.
	Registry Registry `yaml:"registry,omitempty"`
	// Addons are installed after the cluster is running, in this order.
	Addons []Addon `yaml:"addons,omitempty" effect:"addons" install:"add"`
	// DNS is name resolution inside the cluster.
	DNS DNS `yaml:"dns,omitempty"`
	// Extra holds additional host names and name servers for every host.
	Extra Extra `yaml:"extra,omitempty"`
	// Monitoring of the cluster.
	Monitoring Monitoring `yaml:"monitoring,omitempty"`
	// Bundle lists what the bundle contains in addition to what the cluster requires, and
	// whose signatures are accepted.
	Bundle Bundle `yaml:"bundle,omitempty"`
	// Sources replaces upstream addresses with mirrors when a bundle is built. The expected
	// digest of a file or image stays the same.
	Sources Sources `yaml:"sources,omitempty"`
}
