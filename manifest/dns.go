package manifest

// DNS is name resolution inside the cluster.
type DNS struct {
	// DNSEtcHosts are lines in the form of /etc/hosts that CoreDNS answers from.
	DNSEtcHosts string `yaml:"dnsEtcHosts,omitempty" format:"hostsFile" effect:"dns" install:"set"`
	// CoreDNS is the cluster's name server.
	CoreDNS CoreDNS `yaml:"coredns,omitempty"`
	// NodeLocalDNS is a cache on each node.
	NodeLocalDNS NodeLocalDNS `yaml:"nodelocaldns,omitempty"`
}

// CoreDNS is the cluster's name server.
type CoreDNS struct {
	// AdditionalConfigs are lines added to the server block of the default zone.
	AdditionalConfigs string `yaml:"additionalConfigs,omitempty" effect:"dns" install:"set"`
	// ExternalZones are forwarded to name servers of their own, before the
	// default zone.
	ExternalZones []ExternalZone `yaml:"externalZones,omitempty" effect:"dns" install:"set"`
	// RewriteBlock is a block of the rewrite plugin.
	RewriteBlock string `yaml:"rewriteBlock,omitempty" effect:"dns" install:"set"`
	// UpstreamDNSServers are asked for all names outside the cluster. Default:
	// the node's own name servers.
	UpstreamDNSServers []string `yaml:"upstreamDNSServers,omitempty" format:"nameserver" effect:"dns" install:"set"`
}

// NodeLocalDNS is a DNS cache on each node.
type NodeLocalDNS struct {
	// Enabled installs the cache. Default: true when externalZones are written,
	// else false.
	Enabled *bool `yaml:"enabled,omitempty" effect:"dns"`
	// ExternalZones are forwarded to name servers of their own.
	ExternalZones []ExternalZone `yaml:"externalZones,omitempty" effect:"dns"`
}

// ExternalZone is a set of zones with name servers of their own.
type ExternalZone struct {
	// Zones by name, each with an optional port: example.io:1053.
	Zones []string `yaml:"zones,omitempty" required:"true" format:"zone"`
	// Nameservers that know the zones: IP addresses, each with an optional port.
	Nameservers []string `yaml:"nameservers,omitempty" required:"true" format:"nameserver"`
	// Cache answers for this many seconds.
	Cache int `yaml:"cache,omitempty" default:"30" min:"0" max:"86400"`
	// Rewrite rules, in the words of CoreDNS's rewrite plugin.
	Rewrite []string `yaml:"rewrite,omitempty"`
}
