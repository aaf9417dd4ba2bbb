package site

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/steptest"
	"github.com/mensylisir/kubexm/versions"
)

// TestAddonsThatCanBeInstalled: manifests and charts that the bundle carries.
func TestAddonsThatCanBeInstalled(t *testing.T) {
	catalog, err := versions.Load()
	if err != nil {
		t.Fatal(err)
	}
	for addon, refused := range map[string]string{
		"metallb": "",
		"{name: a, source: 'https://files.example/a.yaml'}":                             "",
		"{name: a, type: yaml, source: 'https://files.example/a'}":                      "",
		"{name: a, source: 'https://files.example/a', version: 1.0.0}":                  "",
		"{name: a, source: 'https://files.example/a.tgz'}":                              "",
		"{name: a, source: 'oci://files.example/a:1'}":                                  "",
		"{name: a, type: helm, source: 'https://files.example/a.yaml', version: 1.0.0}": "",
		"{name: a, source: ./a.yaml}":                                                   "",
		"{name: a, source: ./a}":                                                        "",
		"{name: metallb, values: {a: b}}":                                               "version matrix has no chart",
		"metrics-server":                                                                "",
		"{name: metrics-server, type: helm}":                                            "version matrix has no chart",
		"cert-manager":                                                                  "has no manifest",
	} {
		c := steptest.Cluster(t, steptest.Small+"  addons: ["+addon+"]\n")
		lock, problems := catalog.Resolve(c)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		var ps manifest.Problems
		ps = append(ps, addonsWithout(c, lock)...)
		switch {
		case refused == "" && len(ps) > 0:
			t.Errorf("%s: %v", addon, ps)
		case refused != "" && (len(ps) != 1 || !strings.Contains(ps[0].Message, refused) || ps[0].Advice == "" || !strings.HasPrefix(ps[0].Path, "spec.addons[0]")):
			t.Errorf("%s: %v, want %s", addon, ps, refused)
		}
		for _, p := range AddonWarnings(c, lock) {
			if p.Severity != manifest.Warning || !strings.Contains(p.Message, refused) || !strings.Contains(p.Message, "the bundle contains its images") {
				t.Errorf("%s: %v", addon, p)
			}
		}
		// What is refused can still be carried; what is not is proved complete.
		if err := Complete(c, lock); err != nil {
			t.Errorf("%s: %v", addon, err)
		}
	}
}
