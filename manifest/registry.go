package manifest

// Registry is the image registry at the site.
type Registry struct {
	// Type of registry: registry installs the CNCF Distribution registry on the registry
	// host, harbor installs Harbor there, external uses an existing registry. With none there
	// is no registry: kubexm sends the bundle's images to each node. Default: registry if
	// spec.roleGroups.registry has a host, else external if privateRegistry is set, else none
	// (empty).
	Type string `yaml:"type,omitempty" enum:"registry|harbor|external|none" built:"registry|external|none" effect:"immutable=create,registry"`
	// Version of the registry or of Harbor. Default: the version in the version matrix.
	Version string `yaml:"version,omitempty" format:"version" effect:"registry" install:"all"`
	// PrivateRegistry is the name of the registry in image references: host[:port]. Default:
	// dockerhub.kubexm.local if kubexm installs a registry.
	PrivateRegistry string `yaml:"privateRegistry,omitempty" format:"registryHost" effect:"immutable=create,registry"`
	// NamespaceOverride is the one project (first part of the repository name) that all
	// images are stored in. In an external registry the project must exist already.
	NamespaceOverride string `yaml:"namespaceOverride,omitempty" effect:"registry" install:"all"`
	// Auths are the credentials and TLS settings of registries that the nodes pull from, by
	// host or host:port. kubexm pushes to an external privateRegistry with username and
	// password. A registry that kubexm installs gets this user for pulling, in addition to
	// kubexm's own user.
	Auths map[string]RegistryAuth `yaml:"auths,omitempty" effect:"runtime=files" install:"add"`
	// RegistryDataDir is the directory of the images on the registry host.
	RegistryDataDir string `yaml:"registryDataDir,omitempty" default:"/mnt/registry" format:"path" effect:"immutable=create,registry"`
	// HarborConfig holds settings of Harbor, for type harbor.
	HarborConfig HarborConfig `yaml:"harborConfig,omitempty"`
}

// RegistryAuth holds the credentials and TLS settings of one registry.
type RegistryAuth struct {
	// Username to log in with.
	Username string `yaml:"username,omitempty" effect:"registry,runtime=files" install:"all"`
	// Password to log in with. A secret.
	Password Secret `yaml:"password,omitempty" effect:"registry,runtime=files" install:"all"`
	// PullUsername is the user that nodes pull from an external privateRegistry with. It needs
	// no permission to push. Default: username; then any node can replace images.
	PullUsername string `yaml:"pullUsername,omitempty" effect:"runtime=files" install:"add"`
	// PullPassword of pullUsername. A secret.
	PullPassword Secret `yaml:"pullPassword,omitempty" effect:"runtime=files" install:"add"`
	// SkipTLSVerify uses TLS without verifying the registry's certificate.
	SkipTLSVerify bool `yaml:"skipTLSVerify,omitempty" default:"false" effect:"runtime=files" install:"all"`
	// PlainHTTP uses HTTP without TLS.
	PlainHTTP bool `yaml:"plainHTTP,omitempty" default:"false" effect:"runtime=files" install:"all"`
	// CertsPath is a directory on the workdir host (the machine that runs kubexm), in the
	// layout of docker's certs.d. *.crt files are CA certificates that verify the registry's
	// certificate. A *.cert file and the *.key file of the same name are a client certificate.
	// Default: the CA certificates of each host's operating system.
	CertsPath string `yaml:"certsPath,omitempty" effect:"runtime=files" install:"all"`
}

// HarborConfig holds settings of Harbor.
type HarborConfig struct {
	// AdminPassword of Harbor's admin user. A secret. Default: kubexm generates one and
	// stores it in the workdir.
	AdminPassword Secret `yaml:"adminPassword,omitempty" effect:"registry"`
	// DatabasePassword of Harbor's database. A secret. Default: kubexm generates one and
	// stores it in the workdir.
	DatabasePassword Secret `yaml:"databasePassword,omitempty" effect:"registry"`
	// HTTPPort of Harbor, which only redirects to HTTPS.
	HTTPPort int `yaml:"httpPort,omitempty" default:"80" min:"1" max:"65535" effect:"registry"`
	// HTTPSPort of Harbor.
	HTTPSPort int `yaml:"httpsPort,omitempty" default:"443" min:"1" max:"65535" effect:"registry"`
	// Trivy installs the vulnerability scanner Trivy.
	Trivy Switch `yaml:"trivy,omitempty" effect:"registry"`
}
