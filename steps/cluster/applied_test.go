package cluster_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestAppliedSerial: what Record keeps in the cluster is told by it again.
func TestAppliedSerial(t *testing.T) {
	kase := standing(with(t, ""))
	s := kase.Sim(t)
	step := cluster.Record()
	h := kase.NewHost(t, s, step)
	if n, err := cluster.AppliedSerial(t.Context(), h); err != nil || n != 0 {
		t.Errorf("a cluster without a record: %d, %v", n, err)
	}
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if n, err := cluster.AppliedSerial(t.Context(), h); err != nil || n != 7 {
		t.Errorf("a cluster with a record: %d, %v", n, err)
	}
	s.RemoveAll("/etc/kubernetes/manifests")
	if n, err := cluster.AppliedSerial(t.Context(), h); err == nil {
		t.Errorf("a cluster that does not answer: %d", n)
	}
	none := steptest.Case{Cluster: kase.Cluster, Before: func(*conntest.Sim) {}}
	if n, err := cluster.AppliedSerial(t.Context(), none.NewHost(t, none.Sim(t), step)); err != nil || n != 0 {
		t.Errorf("no cluster: %d, %v", n, err)
	}
}

// TestRecordOfNothing: a run without a record of what it applied writes none.
func TestRecordOfNothing(t *testing.T) {
	kase := standing(with(t, ""))
	for _, step := range []steps.Step{cluster.Record(), cluster.WriteApplied(), cluster.WriteCopy(), cluster.WriteRelease()} {
		h := kase.NewHost(t, kase.Sim(t), step)
		h.Applied = nil
		if err := step.Run(t.Context(), h); err == nil || !strings.Contains(err.Error(), "has no record of what it applied") {
			t.Errorf("%s: %v", step.Meta().Name, err)
		}
	}
}

func TestHighestSerial(t *testing.T) {
	for name, c := range map[string]struct {
		summary map[string]string
		want    int64
	}{
		"none":               {nil, 0},
		"before it was kept": {map[string]string{"serial": "5"}, 5},
		"after a downgrade":  {map[string]string{"serial": "5", "highest": "9"}, 9},
		"no numbers":         {map[string]string{"serial": "x", "highest": ""}, 0},
	} {
		if got := cluster.HighestSerial(c.summary); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
