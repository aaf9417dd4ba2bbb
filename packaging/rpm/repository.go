package rpm

import (
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

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

// Addresses gives where the file of a package of this repository may be, in the order
// in which to ask.
func (r Repository) Addresses(p *packaging.Package) []string {
	out := make([]string, len(r.Bases))
	for i, base := range r.Bases {
		out[i] = strings.TrimSuffix(base, "/") + "/" + p.Location
	}
	return out
}
