package manifest

// SourcesKind is the kind of a document that holds Sources alone.
const SourcesKind = "Sources"

// Sources says where bytes are fetched from instead of from upstream. A
// replaced address never changes the digest that is expected of the bytes.
type Sources struct {
	// Zone is a preset of replacements for a part of the world. cn has a mirror inside
	// China for every host that the version matrix names, of images and of files; what
	// nobody mirrors is warned of and fetched directly. Other hosts, those that a config
	// names itself, it leaves alone. Entries of replace come before it. Without a zone
	// here, the environment variable KMZONE names one where a bundle is built.
	Zone string `yaml:"zone,omitempty" enum:"cn" effect:"tool"`
	// Replace addresses. Of several entries that match, the one with the
	// longest from counts.
	Replace []Replacement `yaml:"replace,omitempty" effect:"tool"`
	// CAFile holds further certificates (PEM) that HTTPS servers are checked against.
	CAFile string `yaml:"caFile,omitempty" effect:"tool"`
	// DockerConfig is the file with the credentials of registries and chart
	// repositories, in the form of docker's config.json. Default: docker's own
	// place for it, and for chart repositories Helm's repositories.yaml first.
	DockerConfig string `yaml:"dockerConfig,omitempty" effect:"tool"`
}

// Replacement is one host or prefix with what stands in for it.
type Replacement struct {
	// From is host[:port][/prefix] without a scheme, matched whole path segment
	// by whole path segment. It holds for files and images alike.
	From string `yaml:"from,omitempty" required:"true" format:"addressPrefix"`
	// To is [scheme://]host[:port][/prefix]; the scheme is https unless plainHTTP.
	To string `yaml:"to,omitempty" required:"true" format:"replacement"`
	// PlainHTTP speaks HTTP without TLS to this address.
	PlainHTTP bool `yaml:"plainHTTP,omitempty" default:"false"`
	// Flatten keeps only the last segment of an image's name:
	// coredns/coredns becomes coredns.
	Flatten bool `yaml:"flatten,omitempty" default:"false"`
}
