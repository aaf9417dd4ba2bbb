package rpm

// Repository is one yum repository, as a .repo file describes it.
type Repository struct {
	ID    string
	Name  string   // for people
	Bases []string // URLs of the repository, in order of preference
	Keys  []string // URLs of the OpenPGP keys for its packages and metadata
	// SignedPackages requires a valid signature of every package (gpgcheck),
	// SignedMetadata of repomd.xml (repo_gpgcheck).
	SignedPackages bool
	SignedMetadata bool
	// Priority is usually 1 to 99; packages of a repository with a lower number hide those
	// of the same name in others.
	Priority int
	// ModuleHotfixes makes its packages candidates even if a module stream has them too.
	ModuleHotfixes bool
	Exclude        []string // patterns of excluded packages
	Include        []string // patterns of included packages; empty for all
}

// defaultPriority is the default of dnf.
const defaultPriority = 99
