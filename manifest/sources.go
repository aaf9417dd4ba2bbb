package manifest

// SourcesKind is the kind of a document that contains only Sources.
const SourcesKind = "Sources"

// Sources replaces upstream addresses with mirrors when a bundle is built. The expected
// digest of a file or image stays the same.
type Sources struct {
	// Zone is a preset of mirrors for a region. The zone cn has a mirror in China for every
	// upstream host of the version matrix, for images and for files. Content without a mirror
	// is downloaded from upstream, with a warning. Hosts that only the config refers to are
	// not replaced. Entries of replace take precedence over the zone. If this field is not
	// set, the environment variable KMZONE is used when a bundle is built.
	Zone string `yaml:"zone,omitempty" enum:"cn" effect:"tool"`
	// Replace lists address prefixes and their mirrors. If several entries match, the entry
	// with the longest from is used.
	Replace []Replacement `yaml:"replace,omitempty" effect:"tool"`
	// CAFile is the path of a PEM file with additional CA certificates for HTTPS servers.
	CAFile string `yaml:"caFile,omitempty" effect:"tool"`
	// DockerConfig is the path of a file with credentials for registries and chart
	// repositories, in the format of docker's config.json. Default: docker's own config file;
	// for chart repositories Helm's repositories.yaml is read first.
	DockerConfig string `yaml:"dockerConfig,omitempty" effect:"tool"`
}

// Replacement is a host or address prefix, and the mirror that replaces it.
type Replacement struct {
	// From is host[:port][/prefix] without a scheme, for example dl.k8s.io. Complete path
	// segments are compared. It applies to files and images.
	From string `yaml:"from,omitempty" required:"true" format:"addressPrefix"`
	// To is [scheme://]host[:port][/prefix]. The scheme is https unless plainHTTP is true.
	To string `yaml:"to,omitempty" required:"true" format:"replacement"`
	// PlainHTTP allows HTTP without TLS to this address.
	PlainHTTP bool `yaml:"plainHTTP,omitempty" default:"false"`
	// Flatten keeps only the last segment of an image's name: coredns/coredns becomes coredns.
	Flatten bool `yaml:"flatten,omitempty" default:"false"`
}
