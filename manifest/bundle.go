package manifest

// Bundle lists what the bundle contains in addition to what the cluster requires, and whose
// signatures are accepted.
type Bundle struct {
	// Platforms of the files and images in the bundle, for example linux/amd64. Default: the
	// architectures of the hosts; linux/amd64 without hosts.
	Platforms []Platform `yaml:"platforms,omitempty" effect:"tool"`
	// OperatingSystems whose packages the bundle includes. Without this field a bundle
	// contains no packages.
	OperatingSystems []OperatingSystem `yaml:"operatingSystems,omitempty" effect:"tool"`
	// KubernetesVersions that the bundle contains in addition to spec.kubernetes.version, for
	// upgrades.
	KubernetesVersions []string `yaml:"kubernetesVersions,omitempty" format:"kubernetesVersion" effect:"tool"`
	// Images in addition to those that the cluster requires.
	Images []BundleImage `yaml:"images,omitempty" effect:"tool"`
	// Files in addition to those that the cluster requires.
	Files []BundleFile `yaml:"files,omitempty" effect:"tool"`
	// Trust specifies whose bundle signatures this cluster accepts. Flags that specify a key
	// or an identity replace these settings. kubexm reads them only from a config that the
	// user passes, never from the config inside a bundle.
	Trust BundleTrust `yaml:"trust,omitempty"`
}

// BundleTrust specifies whose bundle signatures are accepted: keys, or one keyless identity.
type BundleTrust struct {
	// Keys are the paths of public key files such as cosign.pub, relative to the config's
	// folder.
	Keys []string `yaml:"keys,omitempty" effect:"tool"`
	// TrustedRoot is the path of Sigstore's trusted_root.json, relative to the config's
	// folder. Keyless signatures are verified against it.
	TrustedRoot string `yaml:"trustedRoot,omitempty" effect:"tool"`
	// CertificateIdentity is the signer's identity in the certificate of a keyless
	// signature, as in cosign's --certificate-identity. It is compared exactly.
	CertificateIdentity string `yaml:"certificateIdentity,omitempty" effect:"tool"`
	// CertificateOIDCIssuer is the OIDC issuer in the certificate of a keyless signature, as
	// in cosign's --certificate-oidc-issuer. It is compared exactly.
	CertificateOIDCIssuer string `yaml:"certificateOIDCIssuer,omitempty" effect:"tool"`
	// AllowUnsigned accepts a bundle without a signature, as --allow-unsigned does. It cannot
	// be combined with keys or an identity. Flags that specify a key or an identity override it.
	AllowUnsigned bool `yaml:"allowUnsigned,omitempty" effect:"tool"`
}

// OperatingSystem is one distribution, with the releases whose packages are included.
type OperatingSystem struct {
	// Name of the distribution: the value of ID in /etc/os-release, for example debian.
	Name string `yaml:"name,omitempty" required:"true" format:"distribution"`
	// Releases of the distribution: values of VERSION_ID in /etc/os-release, for example 12.
	Releases []string `yaml:"releases,omitempty" required:"true" format:"release"`
	// Format of the distribution's packages. Default: the format that kubexm knows for the
	// distribution.
	Format string `yaml:"format,omitempty" enum:"deb|rpm"`
	// Repositories that the packages are downloaded from: lines as in apt's sources.list, or
	// the paths of .list, .sources or .repo files or of folders with such files, relative to
	// the config's folder. Default: the repositories configured on the machine that builds the
	// bundle.
	Repositories []string `yaml:"repositories,omitempty" format:"packageRepository"`
	// Keys are the paths of OpenPGP public key files, relative to the config's folder.
	// Repository signatures by these keys are accepted, in addition to the keys in a
	// repository's own settings.
	Keys []string `yaml:"keys,omitempty"`
}

// BundleImage is one additional image. The short form is its reference alone.
type BundleImage struct {
	// Reference of the image with registry and tag, for example docker.io/library/nginx:1.29.
	Reference string `yaml:"reference,omitempty" required:"true" format:"image" scalar:"true"`
	// Digest of the image index, or of the manifest if there is no index: sha256:…. Default:
	// the digest of the tag when kubexm writes the lock.
	Digest string `yaml:"digest,omitempty" format:"digest"`
}

// BundleFile is one additional file.
type BundleFile struct {
	// Name of the file in the bundle, unique for its platform.
	Name string `yaml:"name,omitempty" required:"true" format:"fileName"`
	// Address that the file is downloaded from. An http:// address requires an entry of
	// spec.sources.replace with plainHTTP.
	Address string `yaml:"address,omitempty" required:"true" format:"url"`
	// SHA256 digest of the file in hex. Default: the digest of the file when kubexm writes
	// the lock.
	SHA256 string `yaml:"sha256,omitempty" format:"sha256"`
	// Platform of the file, for example linux/arm64. Default: any.
	Platform Platform `yaml:"platform,omitempty"`
}
