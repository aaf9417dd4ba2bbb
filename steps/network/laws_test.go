package network

import (
	"os"
	"testing"

	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestNetworksKeepTheirLaws(t *testing.T) {
	upstream, err := os.ReadFile("testdata/upstream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := steptest.Cluster(t, steptest.Small)
	steptest.Do(t, steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}, Multus(), true)
	steptest.Do(t, steptest.Case{
		Cluster: c, Before: steptest.ExistingCluster(c), Artifacts: steptest.Artifacts{Text: map[string]string{"flannel": string(upstream)}},
	}, Flannel(c), true)
}
