package system

import (
	"crypto/sha256"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

// Metadata writes the repository's own files of an artifact whose packages are
// pinned, from what its members have of each package: Packages and Release, or
// repodata. The same lock gives the same bytes. Members that are no packages do not
// matter. A member's record that is not of that package is refused.
func Metadata(a manifest.Artifact) ([]File, error) {
	if a.Packages == nil {
		return nil, fmt.Errorf("%s has no packages", a.ID)
	}
	var packages []manifest.Member
	for _, m := range a.Members {
		if m.Package != "" {
			packages = append(packages, m)
		}
	}
	switch a.Packages.Format {
	case manifest.Deb:
		about := apt.About{Origin: "kubexm", Label: a.Name, Suite: a.Name, Arch: apt.Arch(a.Platform.Arch), Date: a.Packages.Date}
		return apt.Write(packages, about)
	case manifest.RPM:
		return rpm.Write(packages, a.Packages.Date)
	}
	return nil, fmt.Errorf("%q is no format of packages", a.Packages.Format)
}

// pinned gives a file of the repository's own as a member.
func pinned(f File) manifest.Member {
	return manifest.Member{Path: f.Path, Name: f.Path, Size: int64(len(f.Content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(f.Content))}
}
