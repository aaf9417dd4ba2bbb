package manifest

import "slices"

// Host is one machine of the cluster, and how to log in to it. The login
// fields stand beside the others; what is not written comes from spec.ssh.
type Host struct {
	// Name of the machine, unique, a DNS name in lower case: the node's name,
	// one that every host knows, and the machine's own host name from then on.
	Name string `yaml:"name,omitempty" required:"true" format:"hostname" effect:"nodes" install:"new"`
	// Address that kubexm dials: an IP address or a DNS name.
	Address string `yaml:"address,omitempty" required:"true" format:"host" effect:"tool"`
	// InternalAddress is what the cluster's machines use among themselves: one
	// IP address, or one of each family. Default: the address, where that is no name.
	InternalAddress []string `yaml:"internalAddress,omitempty" split:"," format:"ip" effect:"immutable=join"`
	// Arch is the machine's architecture.
	Arch string `yaml:"arch,omitempty" default:"amd64" enum:"amd64|arm64" effect:"immutable=join"`
	// Labels that the node gets.
	Labels map[string]string `yaml:"labels,omitempty" effect:"labels" install:"add"`
	// Taints that the node gets.
	Taints []Taint `yaml:"taints,omitempty" effect:"labels" install:"add"`

	SSH `yaml:",inline"`
}

// Taint keeps pods off a node that do not tolerate it. The short form is
// key=value:effect or key:effect, as kubectl writes it.
type Taint struct {
	// Key of the taint: an optional DNS prefix and a name.
	Key string `yaml:"key,omitempty" required:"true"`
	// Value of the taint.
	Value string `yaml:"value,omitempty"`
	// Effect on pods that do not tolerate the taint.
	Effect string `yaml:"effect,omitempty" required:"true" enum:"NoSchedule|PreferNoSchedule|NoExecute"`
}

// Login says how to open an SSH connection to one machine.
type Login struct {
	// Port of the SSH server.
	Port int `yaml:"port,omitempty" default:"22" min:"1" max:"65535" effect:"tool"`
	// User to log in as. A user other than root needs sudo.
	User string `yaml:"user,omitempty" default:"root" effect:"tool"`
	// Password of the user. A secret: ${env:NAME} or file:PATH keep it out of
	// the document.
	Password Secret `yaml:"password,omitempty" effect:"tool"`
	// PrivateKeyPath is the private key's file on the machine kubexm runs on;
	// a leading ~ is the home directory there.
	PrivateKeyPath string `yaml:"privateKeyPath,omitempty" effect:"tool"`
	// Passphrase of the private key. A secret.
	Passphrase Secret `yaml:"passphrase,omitempty" effect:"tool"`
	// Agent asks the SSH agent at SSH_AUTH_SOCK for keys. Default: true when
	// neither password nor privateKeyPath is written.
	Agent *bool `yaml:"agent,omitempty" effect:"tool"`
	// HostKeyPolicy says which host keys are trusted: strict takes only what
	// known_hosts holds, accept-new also takes and records the key of a machine
	// never seen, pinned takes hostKey alone.
	HostKeyPolicy string `yaml:"hostKeyPolicy,omitempty" default:"strict" enum:"strict|accept-new|pinned" effect:"tool"`
	// HostKey is the machine's public key as in known_hosts ("ssh-ed25519
	// AAAA…") or its fingerprint ("SHA256:…"), for hostKeyPolicy pinned.
	HostKey string `yaml:"hostKey,omitempty" format:"hostKey" effect:"tool"`
	// ConnectionTimeout is the longest wait for a connection.
	ConnectionTimeout Duration `yaml:"connectionTimeout,omitempty" default:"15s" effect:"tool"`
}

// SSH says how to reach a host and how to become root there.
type SSH struct {
	Login `yaml:",inline"`
	// SudoPassword is what sudo asks for. A secret. Default: sudo asks nothing,
	// or takes the password.
	SudoPassword Secret `yaml:"sudoPassword,omitempty" effect:"tool"`
	// JumpHost is a machine that connections go through.
	JumpHost *JumpHost `yaml:"jumpHost,omitempty"`
}

// JumpHost is a machine that SSH connections go through.
type JumpHost struct {
	// Address that kubexm dials: an IP address or a DNS name.
	Address string `yaml:"address,omitempty" required:"true" format:"host" scalar:"true" effect:"tool"`

	Login `yaml:",inline"`
}

// has tells whether an address is one of the host's.
func (h Host) has(address string) bool {
	return h.Address == address || slices.Contains(h.InternalAddress, address)
}

// LeadName is the word for the master that is healthy, whichever that is. No host has it
// as its name.
const LeadName = "lead"

// The roles of hosts, as in spec.roleGroups.
const (
	RoleEtcd         = "etcd"
	RoleMaster       = "master"
	RoleWorker       = "worker"
	RoleRegistry     = "registry"
	RoleLoadBalancer = "loadbalancer"
)

// RoleGroups lists the hosts of each role by name. A name may hold a range:
// node[5:7] is node5, node6 and node7; node[08:10] is node08, node09 and node10.
type RoleGroups struct {
	// Etcd hosts run the store's members when spec.etcd.type is kubexm. An odd
	// number of them is best. Default: the masters.
	Etcd []string `yaml:"etcd,omitempty" effect:"nodes" install:"new"`
	// Master hosts run the control plane.
	Master []string `yaml:"master,omitempty" effect:"nodes" install:"new"`
	// Worker hosts run pods. A master that is listed here too runs pods as well.
	Worker []string `yaml:"worker,omitempty" effect:"nodes" install:"new"`
	// Registry is the host of the image registry: one at most.
	Registry []string `yaml:"registry,omitempty" effect:"nodes" install:"new"`
	// LoadBalancer hosts run keepalived with haproxy or nginx before the API servers.
	LoadBalancer []string `yaml:"loadbalancer,omitempty" effect:"nodes" install:"new"`
}

// ControlPlaneEndpoint is the address under which the API servers are reached.
type ControlPlaneEndpoint struct {
	// Domain is the name that certificates and kubeconfigs carry.
	Domain string `yaml:"domain,omitempty" default:"lb.kubexm.local" format:"hostname" effect:"immutable=create"`
	// Address is the virtual IP: of keepalived, of kube-vip, or of a load
	// balancer that exists. Without a load balancer it is a master's own.
	Address string `yaml:"address,omitempty" format:"ip" effect:"lb"`
	// Port under which clients reach the API servers. Without a load balancer,
	// and with kube-vip, the API servers listen on it themselves; behind another
	// load balancer they listen on 6443.
	Port int `yaml:"port,omitempty" default:"6443" min:"1" max:"65535" effect:"immutable=create"`
	// ExternalDNS says that the site's own DNS resolves the domain; the address
	// stays empty then.
	ExternalDNS bool `yaml:"externalDNS,omitempty" default:"false" effect:"lb"`
}

// LoadBalancer says what stands before the API servers.
type LoadBalancer struct {
	// Mode is the way clients reach the API servers: external through machines
	// of their own, internal through something on each node, none directly.
	// Default: external or internal, whichever has a type; none without one.
	Mode string `yaml:"mode,omitempty" enum:"external|internal|none" effect:"lb"`
	// External is a load balancer on machines of its own.
	External ExternalLoadBalancer `yaml:"external,omitempty"`
	// Internal is a load balancer inside the cluster.
	Internal InternalLoadBalancer `yaml:"internal,omitempty"`
}

// ExternalLoadBalancer is a load balancer on machines of its own.
type ExternalLoadBalancer struct {
	// Type: kubexm-kh installs keepalived and haproxy on the loadbalancer
	// hosts, kubexm-kn keepalived and nginx; external is one that exists, and
	// passes TCP on to port 6443 of the masters.
	Type string `yaml:"type,omitempty" enum:"kubexm-kh|kubexm-kn|external" built:"external" effect:"lb"`
	// Keepalived holds the virtual IP.
	Keepalived Keepalived `yaml:"keepalived,omitempty"`
}

// Keepalived moves the virtual IP between the loadbalancer hosts.
type Keepalived struct {
	// VRID is the virtual router id, unique among all that share the network segment.
	VRID int `yaml:"vrid,omitempty" default:"51" min:"1" max:"255" effect:"lb"`
	// Interface that carries the virtual IP. Default: the one that holds the
	// host's internal address.
	Interface string `yaml:"interface,omitempty" format:"interface" effect:"lb"`
}

// InternalLoadBalancer is a load balancer inside the cluster.
type InternalLoadBalancer struct {
	// Type: haproxy and nginx run as a pod on each worker, kube-vip holds a
	// virtual IP on the masters.
	Type string `yaml:"type,omitempty" enum:"haproxy|nginx|kube-vip" effect:"lb"`
	// KubeVIP settings, for type kube-vip. The virtual IP is controlPlaneEndpoint.address.
	KubeVIP KubeVIP `yaml:"kubeVip,omitempty"`
}

// KubeVIP holds the virtual IP on the masters.
type KubeVIP struct {
	// Interface that carries the virtual IP. Default: the one that holds the
	// host's internal address.
	Interface string `yaml:"interface,omitempty" format:"interface" effect:"lb"`
}

// System is the operating system's part of every host.
type System struct {
	// NTPServers that chrony follows: addresses, or names of hosts, which then
	// serve time to the others. Default: clocks are left to whatever sets them.
	NTPServers []string `yaml:"ntpServers,omitempty" format:"host" effect:"host" install:"set"`
	// Timezone of every host, as in the IANA database. Default: left as it is.
	Timezone string `yaml:"timezone,omitempty" format:"timezone" effect:"host" install:"set"`
	// RPMs are further packages for hosts of the Red Hat family.
	RPMs []string `yaml:"rpms,omitempty" format:"package" effect:"host" install:"add"`
	// Debs are further packages for hosts of the Debian family.
	Debs []string `yaml:"debs,omitempty" format:"package" effect:"host" install:"add"`
	// Keep names what kubexm leaves as it is on every host, though it would
	// change it otherwise: firewall stays on, hostname stays the machine's own,
	// selinux stays enforcing, swap stays in use. Who names one sees to it that
	// the cluster works with it.
	Keep []string `yaml:"keep,omitempty" enum:"firewall|hostname|selinux|swap" effect:"host" install:"take"`
}

// What spec.system.keep may name.
const (
	KeepFirewall = "firewall"
	KeepHostname = "hostname"
	KeepSELinux  = "selinux"
	KeepSwap     = "swap"
)

// Keeps tells whether spec.system.keep names what.
func (s System) Keeps(what string) bool { return slices.Contains(s.Keep, what) }

// Extra holds names and name servers that every host gets.
type Extra struct {
	// Hosts are further lines of /etc/hosts on every host.
	Hosts []ExtraHost `yaml:"hosts,omitempty" effect:"host" install:"all"`
	// Resolves are further name servers of every host, asked before its own. The C
	// library asks the first three alone.
	Resolves []ExtraResolve `yaml:"resolves,omitempty" effect:"host" install:"set"`
}

// ExtraHost is one name with its address.
type ExtraHost struct {
	// Domain is the name.
	Domain string `yaml:"domain,omitempty" required:"true" format:"hostname"`
	// Address is its IP address.
	Address string `yaml:"address,omitempty" required:"true" format:"ip"`
}

// ExtraResolve is one name server.
type ExtraResolve struct {
	// Address is its IP address.
	Address string `yaml:"address,omitempty" required:"true" format:"ip" scalar:"true"`
}

// Monitoring of the cluster.
type Monitoring struct {
	// Enabled installs Prometheus with what it scrapes.
	Enabled bool `yaml:"enabled,omitempty" default:"false" effect:"addons"`
}
