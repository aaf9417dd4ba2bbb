package manifest

// DNS is name resolution inside the cluster.
type DNS struct {
	// DNSEtcHosts are lines in the format of /etc/hosts that CoreDNS answers from.
	DNSEtcHosts string `yaml:"dnsEtcHosts,omitempty" format:"hostsFile" effect:"dns" install:"set"`
	// CoreDNS holds settings of CoreDNS, the cluster's name server.
	CoreDNS CoreDNS `yaml:"coredns,omitempty"`
	// NodeLocalDNS is a DNS cache on each node.
	NodeLocalDNS NodeLocalDNS `yaml:"nodelocaldns,omitempty"`
}

// CoreDNS holds settings of CoreDNS, the cluster's name server.
type CoreDNS struct {
	// AdditionalConfigs are lines that are added to the server block of the default zone in
	// the Corefile.
	AdditionalConfigs string `yaml:"additionalConfigs,omitempty" effect:"dns" install:"set"`
	// ExternalZones are zones that CoreDNS forwards to separate name servers. They take
	// precedence over the default zone.
	ExternalZones []ExternalZone `yaml:"externalZones,omitempty" effect:"dns" install:"set"`
	// RewriteBlock is a block of CoreDNS's rewrite plugin.
	RewriteBlock string `yaml:"rewriteBlock,omitempty" effect:"dns" install:"set"`
	// UpstreamDNSServers are the name servers for all names outside the cluster: IP
	// addresses, each with an optional port. Default: the node's own name servers.
	UpstreamDNSServers []string `yaml:"upstreamDNSServers,omitempty" format:"nameserver" effect:"dns" install:"set"`
}

// NodeLocalDNS is a DNS cache on each node.
type NodeLocalDNS struct {
	// Enabled installs the cache. Default: true if externalZones are set, else false.
	Enabled *bool `yaml:"enabled,omitempty" effect:"dns"`
	// ExternalZones are zones that the cache forwards to separate name servers. All other names
	// it asks from CoreDNS.
	ExternalZones []ExternalZone `yaml:"externalZones,omitempty" effect:"dns" install:"all"`
}

// ExternalZone is a set of DNS zones that are forwarded to separate name servers.
type ExternalZone struct {
	// Zones by name, each with an optional port, for example example.io:1053.
	Zones []string `yaml:"zones,omitempty" required:"true" format:"zone"`
	// Nameservers of the zones: IP addresses, each with an optional port.
	Nameservers []string `yaml:"nameservers,omitempty" required:"true" format:"nameserver"`
	// Cache is the number of seconds for which answers are cached.
	Cache int `yaml:"cache,omitempty" default:"30" min:"0" max:"86400"`
	// Rewrite rules in the syntax of CoreDNS's rewrite plugin.
	Rewrite []string `yaml:"rewrite,omitempty"`
}
