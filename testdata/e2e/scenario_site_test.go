package e2e

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// scenarioServices is the range of services in the configs of newScenarioSite.
const scenarioServices = "10.204.0.0/20"

// newScenarioSite brings up so many hosts and builds the bundle for a config of
// testdata that needs nothing beside it.
func newScenarioSite(t *testing.T, hosts int, config string, with ...lab.Option) (s *labSite, path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", config))
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOf(t, hosts, string(text), with...)
}

// newSiteOf does that for the text of a config.
func newSiteOf(t *testing.T, hosts int, text string, with ...lab.Option) (s *labSite, path string) {
	t.Helper()
	l := lab.Start(t, hosts, append(with, lab.Alone())...) // its tests compare inventories
	l.Inside(netip.MustParsePrefix(scenarioServices))
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	s = &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(text)}
	path = s.write(t, "config.yaml", s.config)
	if strings.Contains(text, "repositories: [lab.list]") {
		lines, err := mirror.Open(cache).Sources()
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, "lab.list", strings.Join(lines, "\n")+"\n")
	}
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s, path
}
