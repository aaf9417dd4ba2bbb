package network

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

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
	chart := ofChart(t)
	steptest.Do(t, chart, Cilium(chart.Cluster, nil), true)
}

// TestAChartsWorkloadsAreWaitedFor by the names in the plugin's row.
func TestAChartsWorkloadsAreWaitedFor(t *testing.T) {
	for sick, says := range map[string]string{
		"cilium-operator": "Deployment/cilium-operator in namespace kube-system: 0 of 1 ready",
		"cilium-node1":    "DaemonSet/cilium in namespace kube-system: 0 of 1 ready",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := ofChart(t)
			c.Before = nil
			c.ChangeCluster = func(k *steptest.Kube) {
				for kind, name := range map[string]string{"Deployment": "cilium-operator", "DaemonSet": "cilium"} {
					k.Put(steptest.Object{"apiVersion": "apps/v1", "kind": kind, "metadata": steptest.Object{"name": name, "namespace": "kube-system"}})
				}
			}
			ill := func(k *steptest.Kube) { k.Unhealthy = []string{sick} }
			steptest.Waits(t, c, WaitCilium(c.Cluster), ill, func(k *steptest.Kube) { k.Unhealthy = nil }, says)
		})
	}
}

// ofChart returns a cluster whose pod network is installed from a chart.
func ofChart(t *testing.T) steptest.Case {
	t.Helper()
	c := steptest.Cluster(t, strings.Replace(steptest.Small, "plugin: flannel", "plugin: cilium", 1))
	return steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
}
