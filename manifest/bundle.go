package manifest

// Bundle says what the archive holds beyond what the cluster itself asks for.
type Bundle struct {
	// Platforms the archive serves, as in linux/amd64. Default: the
	// architectures of the hosts, linux/amd64 without hosts.
	Platforms []Platform `yaml:"platforms,omitempty" effect:"tool"`
	// OperatingSystems whose packages the archive carries.
	OperatingSystems []OperatingSystem `yaml:"operatingSystems,omitempty" effect:"tool"`
	// KubernetesVersions beside spec.kubernetes.version, for upgrades.
	KubernetesVersions []string `yaml:"kubernetesVersions,omitempty" format:"kubernetesVersion" effect:"tool"`
	// Images beside those that the cluster asks for.
	Images []BundleImage `yaml:"images,omitempty" effect:"tool"`
	// Files beside those that the cluster asks for.
	Files []BundleFile `yaml:"files,omitempty" effect:"tool"`
	// Trust says whose bundles this cluster takes. Flags that name a key or an
	// identity replace what is named here. Only a config that a person gives
	// counts, and not the one inside a bundle.
	Trust BundleTrust `yaml:"trust,omitempty"`
}

// BundleTrust says whose signature of a bundle counts.
type BundleTrust struct {
	// Keys are files with public keys, as cosign.pub, by their path from the
	// config's folder.
	Keys []string `yaml:"keys,omitempty" effect:"tool"`
	// TrustedRoot is Sigstore's trusted_root.json, by its path from the config's
	// folder: who vouches for a keyless signature.
	TrustedRoot string `yaml:"trustedRoot,omitempty" effect:"tool"`
	// CertificateIdentity is who signs without a key, exactly as in the certificate.
	CertificateIdentity string `yaml:"certificateIdentity,omitempty" effect:"tool"`
	// CertificateOIDCIssuer is who vouches for that name, exactly as in the certificate.
	CertificateOIDCIssuer string `yaml:"certificateOIDCIssuer,omitempty" effect:"tool"`
	// AllowUnsigned accepts a bundle that is not signed, as --allow-unsigned does. It
	// cannot be combined with keys or an identity, and flags that name one outweigh it.
	AllowUnsigned bool `yaml:"allowUnsigned,omitempty" effect:"tool"`
}

// OperatingSystem is one distribution with the releases that are wanted of it.
type OperatingSystem struct {
	// Name of the distribution, as ID in its /etc/os-release.
	Name string `yaml:"name,omitempty" required:"true" format:"distribution"`
	// Releases, as VERSION_ID in its /etc/os-release.
	Releases []string `yaml:"releases,omitempty" required:"true" format:"release"`
	// Format of its packages. Default: what the distribution is known to have.
	Format string `yaml:"format,omitempty" enum:"deb|rpm"`
	// Repositories the packages are taken from: lines as in apt's sources.list, or
	// files and folders (.list, .sources, .repo) by their path from the config's
	// folder. Default: what the machine that builds the bundle is configured for.
	Repositories []string `yaml:"repositories,omitempty" format:"packageRepository"`
	// Keys are files with OpenPGP public keys, by their path from the config's
	// folder: what they signed counts, beside what a repository's own settings name.
	Keys []string `yaml:"keys,omitempty"`
}

// BundleImage is one further image. The short form is its reference alone.
type BundleImage struct {
	// Reference of the image with registry and tag, as in docker.io/library/nginx:1.29.
	Reference string `yaml:"reference,omitempty" required:"true" format:"image" scalar:"true"`
	// Digest of the image's index or only manifest, as in sha256:…. Default:
	// the one that the tag has when it is resolved.
	Digest string `yaml:"digest,omitempty" format:"digest"`
}

// BundleFile is one further file.
type BundleFile struct {
	// Name of the file in the bundle, unique for its platform.
	Name string `yaml:"name,omitempty" required:"true" format:"fileName"`
	// Address it is fetched from. An http address needs an entry of
	// spec.sources.replace with plainHTTP.
	Address string `yaml:"address,omitempty" required:"true" format:"url"`
	// SHA256 of the file in hex. Default: the one that the file has when it is resolved.
	SHA256 string `yaml:"sha256,omitempty" format:"sha256"`
	// Platform it is for, as in linux/arm64. Default: any.
	Platform Platform `yaml:"platform,omitempty"`
}
