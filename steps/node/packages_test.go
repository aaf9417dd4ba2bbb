package node_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestPackagesKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+"  bundle: {operatingSystems: [{name: debian, releases: [\"11\", \"12\"]}, {name: rocky, releases: [\"9.4\"]}]}\n")
	if got, want := node.Systems(c), []string{"debian-11", "debian-12", "rocky-9.4"}; !slices.Equal(got, want) {
		t.Errorf("systems are %q", got)
	}
	steptest.Ensure(t, steptest.Case{
		Cluster: c, Every: 5, Before: (*conntest.Sim).EndJobsAtOnce,
		Artifacts: steptest.Artifacts{Repositories: map[string]steptest.Repository{
			"debian-12": {Want: []string{"socat"}, Packages: []steptest.Package{{Name: "socat", Version: "1.7", Depends: []string{"libwrap"}}, {Name: "libwrap", Version: "7.6"}}},
		}},
	}, node.InstallPackages(c), node.RemovePackages(c))
}
