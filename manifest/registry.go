package manifest

// Registry is the image registry inside the site.
type Registry struct {
	// Type: registry installs the distribution registry on the registry host,
	// harbor installs Harbor there, external uses one that stands already,
	// none goes without: each node is sent the images of the bundle. Default: registry
	// where spec.roleGroups.registry has a host, else external where privateRegistry is
	// written, else none (empty).
	Type string `yaml:"type,omitempty" enum:"registry|harbor|external|none" built:"registry|external|none" effect:"immutable=create,registry"`
	// Version of the registry or of Harbor. Default: what the matrix holds.
	Version string `yaml:"version,omitempty" format:"version" effect:"registry" install:"all"`
	// PrivateRegistry is the registry's name, as in image references: host[:port].
	// Default: dockerhub.kubexm.local where a registry is installed.
	PrivateRegistry string `yaml:"privateRegistry,omitempty" format:"registryHost" effect:"immutable=create,registry"`
	// NamespaceOverride puts all images into this one project. One of a registry
	// that stands already has to exist.
	NamespaceOverride string `yaml:"namespaceOverride,omitempty" effect:"registry" install:"all"`
	// Auths say how registries are spoken to, by host or host:port: the nodes pull
	// from there. An external privateRegistry is pushed to with username and password;
	// one that is installed gets this user beside kubexm's own, for pulling.
	Auths map[string]RegistryAuth `yaml:"auths,omitempty" effect:"runtime=files" install:"add"`
	// RegistryDataDir holds the images on the registry host.
	RegistryDataDir string `yaml:"registryDataDir,omitempty" default:"/mnt/registry" format:"path" effect:"immutable=create,registry"`
	// HarborConfig is the part of type harbor.
	HarborConfig HarborConfig `yaml:"harborConfig,omitempty"`
}

// RegistryAuth is how one registry is spoken to.
type RegistryAuth struct {
	// Username to log in with.
	Username string `yaml:"username,omitempty" effect:"registry,runtime=files" install:"all"`
	// Password to log in with. A secret.
	Password Secret `yaml:"password,omitempty" effect:"registry,runtime=files" install:"all"`
	// PullUsername is what nodes log in with, to pull only, at an external
	// privateRegistry. Default: username, and any node can replace images then.
	PullUsername string `yaml:"pullUsername,omitempty" effect:"runtime=files" install:"add"`
	// PullPassword of that user. A secret.
	PullPassword Secret `yaml:"pullPassword,omitempty" effect:"runtime=files" install:"add"`
	// SkipTLSVerify speaks TLS without checking the certificate.
	SkipTLSVerify bool `yaml:"skipTLSVerify,omitempty" default:"false" effect:"runtime=files" install:"all"`
	// PlainHTTP speaks HTTP without TLS.
	PlainHTTP bool `yaml:"plainHTTP,omitempty" default:"false" effect:"runtime=files" install:"all"`
	// CertsPath is a directory on the machine kubexm runs on, as docker's certs.d
	// has them: *.crt are CAs that the registry's certificate is checked with, *.cert
	// with *.key of the same name a certificate to show. Default: the CAs of each machine.
	CertsPath string `yaml:"certsPath,omitempty" effect:"runtime=files" install:"all"`
}

// HarborConfig is what Harbor's own configuration takes from here.
type HarborConfig struct {
	// AdminPassword of Harbor's admin user. A secret. Default: one is made and
	// kept in the workdir.
	AdminPassword Secret `yaml:"adminPassword,omitempty" effect:"registry"`
	// DatabasePassword of Harbor's database. A secret. Default: one is made and
	// kept in the workdir.
	DatabasePassword Secret `yaml:"databasePassword,omitempty" effect:"registry"`
	// HTTPPort of Harbor, which only forwards to HTTPS.
	HTTPPort int `yaml:"httpPort,omitempty" default:"80" min:"1" max:"65535" effect:"registry"`
	// HTTPSPort of Harbor.
	HTTPSPort int `yaml:"httpsPort,omitempty" default:"443" min:"1" max:"65535" effect:"registry"`
	// Trivy installs the vulnerability scanner too.
	Trivy Switch `yaml:"trivy,omitempty" effect:"registry"`
}
