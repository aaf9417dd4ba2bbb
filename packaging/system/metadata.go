package system

import (
	"crypto/sha256"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

// Metadata returns the repository metadata of an artifact with pinned packages: Packages
// and Release, or repodata. It is generated from the records of the artifact's members
// and is reproducible. Members that are not packages are ignored. It returns an error if a
// member's record is for another package.
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
	return nil, fmt.Errorf("%q is not a package format", a.Packages.Format)
}

// pinned returns a metadata file as a member of the artifact.
func pinned(f File) manifest.Member {
	return manifest.Member{Path: f.Path, Name: f.Path, Size: int64(len(f.Content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(f.Content))}
}
