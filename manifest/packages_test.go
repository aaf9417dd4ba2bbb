package manifest

import (
	"strings"
	"testing"
)

// TestPackagesThatNobodyCarries: a field that asks for packages is refused where the
// bundle holds none, and what hosts need by themselves is warned of.
func TestPackagesThatNobodyCarries(t *testing.T) {
	const systems = "  bundle: {operatingSystems: [{name: debian, releases: ['12']}]}\n"
	for name, c := range map[string]struct{ spec, refused, warned string }{
		"nothing said":          {"", "", "spec.bundle.operatingSystems"},
		"none, decided":         {"  bundle: {operatingSystems: []}\n", "", ""},
		"debs":                  {"  system: {debs: [tcpdump]}\n  bundle: {operatingSystems: []}\n", "spec.system.debs", ""},
		"rpms and debs":         {"  system: {debs: [tcpdump], rpms: [tcpdump]}\n", "spec.system.rpms spec.system.debs", "spec.bundle.operatingSystems"},
		"debs that are carried": {"  system: {debs: [tcpdump], ntpServers: [node1]}\n" + systems, "", ""},
		"time":                  {"  system: {ntpServers: [node1]}\n  bundle: {operatingSystems: []}\n", "", "spec.system.ntpServers"},
	} {
		cluster := decodeSpec(t, installable+c.spec)
		paths := func(ps Problems) string {
			var out []string
			for _, p := range ps {
				out = append(out, p.Path)
			}
			return strings.Join(out, " ")
		}
		if got := paths(cluster.NotInstallable()); got != c.refused {
			t.Errorf("%s: refused %q, want %q", name, got, c.refused)
		}
		if got := paths(cluster.PackageAdvice()); got != c.warned {
			t.Errorf("%s: warned of %q, want %q", name, got, c.warned)
		}
	}
	if ps := decodeSpec(t, "\n  kubernetes: {version: v1.34.10}\n").PackageAdvice(); len(ps) > 0 {
		t.Errorf("without hosts: %v", ps)
	}
}
