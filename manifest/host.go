package manifest

import "slices"

// Host is one machine of the cluster, and the login for it. Login fields that are not set
// are taken from spec.ssh.
type Host struct {
	// Name of the host: unique, a DNS name in lower case. It is the name of the node, every
	// host resolves it, and kubexm sets the machine's host name to it.
	Name string `yaml:"name,omitempty" required:"true" format:"hostname" effect:"nodes" install:"new"`
	// Address that kubexm connects to by SSH: an IP address or a DNS name.
	Address string `yaml:"address,omitempty" required:"true" format:"host" effect:"tool"`
	// InternalAddress is the address that the hosts of the cluster use among themselves: one
	// IP address, or one IPv4 and one IPv6 address. Default: address, if it is an IP address.
	InternalAddress []string `yaml:"internalAddress,omitempty" split:"," format:"ip" effect:"immutable=join"`
	// Arch is the CPU architecture of the host.
	Arch string `yaml:"arch,omitempty" default:"amd64" enum:"amd64|arm64" effect:"immutable=join"`
	// Labels of the node.
	Labels map[string]string `yaml:"labels,omitempty" effect:"labels" install:"add"`
	// Taints of the node.
	Taints []Taint `yaml:"taints,omitempty" effect:"labels" install:"add"`

	SSH `yaml:",inline"`
}

// Taint keeps pods without a matching toleration off a node. The short form is
// key=value:effect or key:effect, as in kubectl taint.
type Taint struct {
	// Key of the taint: an optional DNS prefix and a name.
	Key string `yaml:"key,omitempty" required:"true"`
	// Value of the taint.
	Value string `yaml:"value,omitempty"`
	// Effect on pods that do not tolerate the taint.
	Effect string `yaml:"effect,omitempty" required:"true" enum:"NoSchedule|PreferNoSchedule|NoExecute"`
}

// Login holds the settings of an SSH connection to one machine.
type Login struct {
	// Port of the SSH server.
	Port int `yaml:"port,omitempty" default:"22" min:"1" max:"65535" effect:"tool"`
	// User to log in as. A user other than root needs sudo.
	User string `yaml:"user,omitempty" default:"root" effect:"tool"`
	// Password of the user. A secret: write ${env:NAME} or file:PATH to keep it out of the
	// document.
	Password Secret `yaml:"password,omitempty" effect:"tool"`
	// PrivateKeyPath is the path of the private key on the workdir host (the machine that
	// runs kubexm). A leading ~ is the home directory of the user who runs kubexm.
	PrivateKeyPath string `yaml:"privateKeyPath,omitempty" effect:"tool"`
	// Passphrase of the private key. A secret.
	Passphrase Secret `yaml:"passphrase,omitempty" effect:"tool"`
	// Agent uses the keys of the SSH agent at SSH_AUTH_SOCK. Default: true if neither
	// password nor privateKeyPath is set.
	Agent *bool `yaml:"agent,omitempty" effect:"tool"`
	// HostKeyPolicy is how host keys are verified. strict accepts only keys in known_hosts.
	// accept-new also accepts and records the key of a host that known_hosts does not contain.
	// pinned accepts only hostKey.
	HostKeyPolicy string `yaml:"hostKeyPolicy,omitempty" default:"strict" enum:"strict|accept-new|pinned" effect:"tool"`
	// HostKey is the host's public key as in known_hosts ("ssh-ed25519 AAAA…") or its
	// fingerprint ("SHA256:…"), for hostKeyPolicy pinned.
	HostKey string `yaml:"hostKey,omitempty" format:"hostKey" effect:"tool"`
	// ConnectionTimeout is the maximum time for establishing a connection.
	ConnectionTimeout Duration `yaml:"connectionTimeout,omitempty" default:"15s" effect:"tool"`
}

// SSH is the login for a host, and the password for sudo.
type SSH struct {
	Login `yaml:",inline"`
	// SudoPassword is the password for sudo. A secret. Default: password, if sudo requires
	// one.
	SudoPassword Secret `yaml:"sudoPassword,omitempty" effect:"tool"`
	// JumpHost is a machine that SSH connections are forwarded through, as with ssh -J.
	JumpHost *JumpHost `yaml:"jumpHost,omitempty"`
}

// JumpHost is a machine that SSH connections are forwarded through, as with ssh -J.
type JumpHost struct {
	// Address that kubexm connects to by SSH: an IP address or a DNS name.
	Address string `yaml:"address,omitempty" required:"true" format:"host" scalar:"true" effect:"tool"`

	Login `yaml:",inline"`
}

// has reports whether the host has an address.
func (h Host) has(address string) bool {
	return h.Address == address || slices.Contains(h.InternalAddress, address)
}

// LeadName represents the first healthy master. Decode rejects it as the name of a host.
const LeadName = "lead"

// The roles of hosts, as in spec.roleGroups.
const (
	RoleEtcd         = "etcd"
	RoleMaster       = "master"
	RoleWorker       = "worker"
	RoleRegistry     = "registry"
	RoleLoadBalancer = "loadbalancer"
)

// RoleGroups lists the hosts of each role by name. A name can contain a range: node[5:7]
// means node5, node6 and node7; node[08:10] means node08, node09 and node10.
type RoleGroups struct {
	// Etcd hosts run the etcd members if spec.etcd.type is kubexm. Use an odd number. Default:
	// the master hosts.
	Etcd []string `yaml:"etcd,omitempty" effect:"nodes" install:"new"`
	// Master hosts run the control plane.
	Master []string `yaml:"master,omitempty" effect:"nodes" install:"new"`
	// Worker hosts run pods. A master that is also listed here runs pods as well.
	Worker []string `yaml:"worker,omitempty" effect:"nodes" install:"new"`
	// Registry is the host of the image registry: at most one.
	Registry []string `yaml:"registry,omitempty" effect:"nodes" install:"new"`
	// LoadBalancer hosts run keepalived with haproxy or nginx in front of the API servers.
	LoadBalancer []string `yaml:"loadbalancer,omitempty" effect:"nodes" install:"new"`
}

// ControlPlaneEndpoint is the name, address and port at which clients reach the API servers.
type ControlPlaneEndpoint struct {
	// Domain is the DNS name of the control plane in certificates and kubeconfigs.
	Domain string `yaml:"domain,omitempty" default:"lb.kubexm.local" format:"hostname" effect:"immutable=create"`
	// Address is the virtual IP of keepalived, of kube-vip or of an existing load balancer.
	// Without a load balancer it is the address of a master. Leave it empty if only workers run
	// a load balancer.
	Address string `yaml:"address,omitempty" format:"ip" effect:"lb"`
	// Port at which clients reach the API servers. The API servers themselves listen on this
	// port, except behind an external load balancer, where they listen on 6443.
	Port int `yaml:"port,omitempty" default:"6443" min:"1" max:"65535" effect:"immutable=create"`
	// ExternalDNS means that the site's own name servers resolve the domain. Leave address
	// empty in this case.
	ExternalDNS bool `yaml:"externalDNS,omitempty" default:"false" effect:"lb"`
}

// LoadBalancer is the load balancer in front of the API servers.
type LoadBalancer struct {
	// Mode is how clients reach the API servers: external uses a load balancer on separate
	// machines, internal a load balancer inside the cluster, none connects directly. Default:
	// external or internal, whichever has a type, external if both have one, and none without
	// a type.
	Mode string `yaml:"mode,omitempty" enum:"external|internal|none" effect:"lb"`
	// External is a load balancer on separate machines.
	External ExternalLoadBalancer `yaml:"external,omitempty"`
	// Internal is a load balancer inside the cluster.
	Internal InternalLoadBalancer `yaml:"internal,omitempty"`
}

// ExternalLoadBalancer is a load balancer on separate machines.
type ExternalLoadBalancer struct {
	// Type of load balancer: kubexm-kh installs keepalived and haproxy on the loadbalancer
	// hosts, kubexm-kn installs keepalived and nginx. external is an existing load balancer
	// that forwards TCP connections to port 6443 of the masters.
	Type string `yaml:"type,omitempty" enum:"kubexm-kh|kubexm-kn|external" built:"kubexm-kh|kubexm-kn|external" effect:"lb"`
	// Keepalived holds the virtual IP on one of the loadbalancer hosts.
	Keepalived Keepalived `yaml:"keepalived,omitempty"`
}

// Keepalived moves the virtual IP between the loadbalancer hosts.
type Keepalived struct {
	// VRID is the VRRP virtual router ID. It must be unique in the network segment.
	VRID int `yaml:"vrid,omitempty" default:"51" min:"1" max:"255" effect:"lb"`
	// Interface that the virtual IP is assigned to. Default: the interface with the host's
	// internal address.
	Interface string `yaml:"interface,omitempty" format:"interface" effect:"lb"`
}

// InternalLoadBalancer is a load balancer inside the cluster.
type InternalLoadBalancer struct {
	// Type of load balancer: haproxy and nginx run as a pod on each worker, for the clients on
	// that worker; an external load balancer may exist as well. kube-vip holds a virtual IP on
	// one of the masters.
	Type string `yaml:"type,omitempty" enum:"haproxy|nginx|kube-vip" built:"haproxy|nginx|kube-vip" effect:"lb"`
	// KubeVIP settings, for type kube-vip. The virtual IP is controlPlaneEndpoint.address.
	KubeVIP KubeVIP `yaml:"kubeVip,omitempty"`
}

// KubeVIP holds the virtual IP on one of the masters.
type KubeVIP struct {
	// Interface that the virtual IP is assigned to. Default: the interface with the host's
	// internal address.
	Interface string `yaml:"interface,omitempty" format:"interface" effect:"lb"`
}

// System holds operating system settings of every host.
type System struct {
	// NTPServers are the time servers of chrony: addresses, or names of hosts in this config,
	// which then serve time to the other hosts. Default: time synchronization is not changed.
	NTPServers []string `yaml:"ntpServers,omitempty" format:"host" effect:"host" install:"set"`
	// Timezone of every host, a name of the IANA database. Default: the time zone is not
	// changed.
	Timezone string `yaml:"timezone,omitempty" format:"timezone" effect:"host" install:"set"`
	// RPMs are additional packages for hosts of the Red Hat family.
	RPMs []string `yaml:"rpms,omitempty" format:"package" effect:"host" install:"add"`
	// Debs are additional packages for hosts of the Debian family.
	Debs []string `yaml:"debs,omitempty" format:"package" effect:"host" install:"add"`
	// Keep lists settings that kubexm would otherwise change on every host. firewall: the
	// firewall stays enabled. hostname: the machine's host name stays. selinux: SELinux stays
	// enforcing. swap: swap stays enabled. You must make sure that the cluster works with
	// the listed settings.
	Keep []string `yaml:"keep,omitempty" enum:"firewall|hostname|selinux|swap" effect:"host" install:"take"`
}

// The values of spec.system.keep.
const (
	KeepFirewall = "firewall"
	KeepHostname = "hostname"
	KeepSELinux  = "selinux"
	KeepSwap     = "swap"
)

// Keeps reports whether spec.system.keep lists what.
func (s System) Keeps(what string) bool { return slices.Contains(s.Keep, what) }

// Extra holds additional host names and name servers for every host.
type Extra struct {
	// Hosts are additional entries of /etc/hosts on every host.
	Hosts []ExtraHost `yaml:"hosts,omitempty" effect:"host" install:"all"`
	// Resolves are additional name servers of every host, before the host's own name servers.
	// The C library queries only the first three name servers of a host (resolv.conf(5)).
	Resolves []ExtraResolve `yaml:"resolves,omitempty" effect:"host" install:"set"`
}

// ExtraHost is one host name with its address.
type ExtraHost struct {
	// Domain is the host name.
	Domain string `yaml:"domain,omitempty" required:"true" format:"hostname"`
	// Address is the IP address of the host name.
	Address string `yaml:"address,omitempty" required:"true" format:"ip"`
}

// ExtraResolve is one name server.
type ExtraResolve struct {
	// Address is the IP address of the name server.
	Address string `yaml:"address,omitempty" required:"true" format:"ip" scalar:"true"`
}

// Monitoring of the cluster.
type Monitoring struct {
	// Enabled installs Prometheus and the exporters that it scrapes.
	Enabled bool `yaml:"enabled,omitempty" default:"false" effect:"addons"`
}
