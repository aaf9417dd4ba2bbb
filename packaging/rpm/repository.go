package rpm

// Repository is one yum repository, as a .repo file describes it.
type Repository struct {
	ID    string
	Name  string   // for people
	Bases []string // where repodata/repomd.xml is below, the address asked first first
	Keys  []string // addresses of the OpenPGP keys that its packages and metadata are signed with
	// SignedPackages asks for a good signature of every package (gpgcheck),
	// SignedMetadata for one of repomd.xml (repo_gpgcheck).
	SignedPackages bool
	SignedMetadata bool
	// Priority is 1 to 99 as a rule; packages of a lower number hide those of the
	// same name that have a higher one.
	Priority int
	// ModuleHotfixes lets its packages stand though a module's stream has them too.
	ModuleHotfixes bool
	Exclude        []string // patterns of packages that it does not give
	Include        []string // where there are some, of those that it gives
}

// defaultPriority is dnf's.
const defaultPriority = 99
