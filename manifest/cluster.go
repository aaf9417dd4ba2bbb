package manifest

// ClusterKind is the kind of a cluster config.
const ClusterKind = "Cluster"

// Cluster is what a person wants: one Kubernetes cluster and the bundle that
// carries everything for it.
//
// Decode reads it. Struct tags say what the decoder, the schema and `kubexm config explain`
// share: default (the value of a field that is not written), enum (the allowed
// words), built (those of them that can be installed), min and max, format (see formats.go), scalar (the field that a plain
// value in place of the mapping fills), split (a plain value is split there). Every
// field has an effect as well (see effect.go), and may have install (effect_install.go).
type Cluster struct {
	// APIVersion is the version of this document's form.
	APIVersion string `yaml:"apiVersion" required:"true" enum:"kubexm.mensylisir.io/v1alpha1" effect:"tool"`
	// Kind is always Cluster.
	Kind string `yaml:"kind" required:"true" enum:"Cluster" effect:"tool"`
	// Metadata names the cluster.
	Metadata Metadata `yaml:"metadata,omitempty"`
	// Spec says what is wanted.
	Spec Spec `yaml:"spec,omitempty"`

	public []byte      // what Public gives for a decoded Cluster
	values []writtenAt // of each add-on, for what is found in them later
}

// Metadata names a cluster.
type Metadata struct {
	// Name of the cluster: lower-case letters, digits and dashes, at most 63.
	// It names the workdir's folder and the archive.
	Name string `yaml:"name,omitempty" required:"true" format:"label" effect:"immutable=create"`
}

// Spec is everything that is wanted of a cluster.
type Spec struct {
	// Hosts are the machines of the cluster. The machine that kubexm runs on is
	// never one of them. None are needed for building a bundle alone.
	Hosts []Host `yaml:"hosts,omitempty" effect:"nodes" install:"new"`
	// SSH holds what every host takes that does not say otherwise itself.
	SSH SSH `yaml:"ssh,omitempty"`
	// RoleGroups says which hosts do what.
	RoleGroups RoleGroups `yaml:"roleGroups,omitempty"`
	// ControlPlaneEndpoint is the address under which the API servers are reached.
	ControlPlaneEndpoint ControlPlaneEndpoint `yaml:"controlPlaneEndpoint,omitempty"`
	// LoadBalancer says what stands before the API servers.
	LoadBalancer LoadBalancer `yaml:"loadBalancer,omitempty"`
	// System is the operating system's part of every host.
	System System `yaml:"system,omitempty"`
	// Kubernetes says which version is installed, how, and with which settings.
	Kubernetes Kubernetes `yaml:"kubernetes,omitempty"`
	// Runtime is the container runtime of every node.
	Runtime Runtime `yaml:"runtime,omitempty"`
	// Etcd is the cluster's store.
	Etcd Etcd `yaml:"etcd,omitempty"`
	// Network is the pod network and the address ranges.
	Network Network `yaml:"network,omitempty"`
	// Storage is what serves persistent volumes.
	Storage Storage `yaml:"storage,omitempty"`
	// Registry is the image registry inside the site.
	Registry Registry `yaml:"registry,omitempty"`
	// Addons are installed once the cluster runs, in this order.
	Addons []Addon `yaml:"addons,omitempty" effect:"addons" install:"add"`
	// DNS is name resolution inside the cluster.
	DNS DNS `yaml:"dns,omitempty"`
	// Extra holds names and name servers that every host gets.
	Extra Extra `yaml:"extra,omitempty"`
	// Monitoring of the cluster.
	Monitoring Monitoring `yaml:"monitoring,omitempty"`
	// Bundle says what the archive holds beyond what the cluster itself asks for.
	Bundle Bundle `yaml:"bundle,omitempty"`
	// Sources says where bytes are fetched from instead of from upstream.
	Sources Sources `yaml:"sources,omitempty"`
}
