package steptest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Repository is a package repository that a conntest.Sim installs from.
type Repository struct {
	Format   string   // empty means manifest.Deb
	Want     []string // as in manifest.PackageSet
	Packages []Package
}

// Package is one package of a Repository.
type Package struct {
	Name, Version string
	Arch          string   // empty means all, or noarch
	Depends       []string // names
	Conflicts     []string
	Provides      []string
	// Script is what happens when a Sim configures the package: "fails".
	Script string
}

// files returns the repository's files by path. The index has apt's format for all package
// formats: a Sim reads no other.
func (r Repository) files() map[string]string {
	files := map[string]string{}
	var index strings.Builder
	for _, p := range r.Packages {
		at := "pool/" + p.Name + "_" + p.Version + "." + r.format()
		files[at] = fmt.Sprintf("%s %s\n", p.Name, p.Version)
		fmt.Fprintf(&index, "Package: %s\nVersion: %s\nArchitecture: %s\nFilename: %s\nSHA256: %s\n", p.Name, p.Version, r.arch(p), at, sum(files[at]))
		for _, f := range []struct {
			name  string
			words []string
		}{{"Depends", p.Depends}, {"Conflicts", p.Conflicts}, {"Provides", p.Provides}, {"Script", strings.Fields(p.Script)}} {
			if len(f.words) > 0 {
				fmt.Fprintf(&index, "%s: %s\n", f.name, strings.Join(f.words, ", "))
			}
		}
		index.WriteByte('\n')
	}
	if r.format() == manifest.RPM {
		files["repodata/primary.xml"] = index.String()
		files["repodata/repomd.xml"] = sum(index.String()) + " repodata/primary.xml\n"
		return files
	}
	files["Packages"] = index.String()
	files["Release"] = sum(index.String()) + " Packages\n"
	return files
}

func (r Repository) format() string {
	if r.Format != "" {
		return r.Format
	}
	return manifest.Deb
}

func (r Repository) arch(p Package) string {
	switch {
	case p.Arch != "":
		return p.Arch
	case r.format() == manifest.RPM:
		return "noarch"
	}
	return "all"
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func (r Repository) artifact(name string, p manifest.Platform) manifest.Artifact {
	p.Distribution, p.Release, _ = strings.Cut(name, "-")
	a := manifest.Artifact{
		ID: "packages/" + name, Kind: manifest.Packages, Name: name, Version: p.Release, Platform: p,
		Packages: &manifest.PackageSet{Format: r.format(), Want: r.Want},
	}
	files := r.files()
	for _, at := range slices.Sorted(maps.Keys(files)) {
		m := manifest.Member{Path: at, Name: at, Size: int64(len(files[at])), SHA256: sum(files[at])}
		for _, x := range r.Packages {
			if at == "pool/"+x.Name+"_"+x.Version+"."+r.format() {
				m.Package = fmt.Sprintf("%s %s (%s)", x.Name, x.Version, r.arch(x))
			}
		}
		a.Members = append(a.Members, m)
	}
	return a
}
