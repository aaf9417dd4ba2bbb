package installer_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// site is a site in memory, and the test that it is for.
type site struct {
	*sitetest.Site
	t      *testing.T
	config string
}

type pipe = sitetest.Pipe

// newSite gives the site of a config in testdata/clusters.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "testdata", "clusters", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return siteOf(t, string(a.Files[0].Data), name)
}

// siteOf gives the site of a config; name says which of testdata/clusters it is.
func siteOf(t *testing.T, config, name string) *site {
	t.Helper()
	return &site{t: t, config: config, Site: sitetest.Of(t, sitetest.Options{Config: config, Root: "..", Change: func(h manifest.Host, m *conntest.Machine) {
		if name == "packages" && h.Arch == "arm64" { // a site of two distributions
			m.Packages, m.OSRelease = "dnf", "ID=\"rocky\"\nVERSION_ID=\"9.4\"\n"
		}
	}})}
}
