package hostile

import (
	"github.com/mensylisir/kubexm/manifest"
)

// lockRows: names in a lock that become files, arguments or lines on a terminal.
func lockRows() []row {
	artifact := func(change func(a *manifest.Artifact)) func(*truth) ([]byte, error) {
		return of(func(t *truth) error {
			return t.editLock(func(l *manifest.Lock) {
				for i := range l.Artifacts {
					if a := &l.Artifacts[i]; a.Kind == manifest.Binary && a.Single() {
						change(a)
						return
					}
				}
			})
		})
	}
	packages := func(name string) func(*truth) ([]byte, error) {
		return artifact(func(a *manifest.Artifact) {
			a.Kind, a.Name = manifest.Packages, "debian-12"
			a.Platform = manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian-12"}
			a.Packages = &manifest.PackageSet{Format: manifest.Deb, Want: []string{name}}
			a.Members = []manifest.Member{{Path: "x.deb", Name: "x.deb", Size: a.Size, SHA256: a.SHA256, Package: name + " 1 (amd64)", Address: "https://example.com/x.deb", Record: "Package: x"}}
			a.Address, a.SHA256, a.Size, a.Trust, a.DigestAddress = "", "", 0, "", ""
		})
	}
	all := []row{
		{name: "chart named ..", make: artifact(func(a *manifest.Artifact) {
			a.Kind, a.Chart = manifest.Chart, &manifest.ChartMeta{APIVersion: "v2", Name: "..", Version: "1.0.0"}
		})},
		{name: "chart named ../../x", make: artifact(func(a *manifest.Artifact) {
			a.Kind, a.Chart = manifest.Chart, &manifest.ChartMeta{APIVersion: "v2", Name: "../../x", Version: "1.0.0"}
		})},
		{name: "binary named ..", make: artifact(func(a *manifest.Artifact) { a.Name = ".." })},
		{name: "version ../../../etc", make: artifact(func(a *manifest.Artifact) { a.Version = "../../../etc" })},
		{name: "member named /etc/x", make: artifact(func(a *manifest.Artifact) {
			a.Archive, a.Members = "tar.gz", []manifest.Member{{Path: "x", Name: "/etc/x", Size: a.Size, SHA256: a.SHA256}}
		})},
		{name: "name of ANSI", says: "has a control character", make: artifact(func(a *manifest.Artifact) { a.ID = "binary/\x1b]0;x\a" })},
		{name: "OS package named with ;$(…)", make: packages("socat;$(reboot)")},
		{name: "OS package named as an option", make: packages("--allow-downgrades")},
		{name: "OS package with a newline", make: packages("socat\nreboot")},
	}
	for i := range all {
		all[i].group, all[i].code = "lock", "bundle-document"
		if all[i].says == "" {
			all[i].says = "is not a valid"
		}
	}
	return all
}
