package etcd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// withAlarm gives a host with a member under kubeadm, and an alarm of that member.
func withAlarm(kind string, size int64) func(*conntest.Sim) {
	return func(s *conntest.Sim) {
		c, _ := manifest.Decode(strings.NewReader(steptest.Small))
		steptest.ExistingKube(c, s).Change(func(k *steptest.Kube) {
			k.Alarm = fmt.Sprintf("memberID:%d alarm:%s ", steptest.MemberNumber("node1"), kind)
			k.Sizes = map[string]int64{"node1": size}
		})
	}
}

// TestDisarmKeepsItsLaws, and the check before it finds what still justifies an alarm.
func TestDisarmKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	quota := c.Spec.Etcd.QuotaBackendBytes
	steptest.Do(t, steptest.Case{Before: withAlarm("NOSPACE", quota-1)}, etcd.Disarm(c), false)
	for name, x := range map[string]struct {
		kind string
		size int64
		want string
	}{
		"resolved": {"NOSPACE", quota - 1, ""},
		"full":     {"NOSPACE", quota, "the database of member node1 has 2147483648 bytes"},
		"corrupt":  {"CORRUPT", 1, "member node1 has the alarm CORRUPT"},
	} {
		kase := steptest.Case{Before: withAlarm(x.kind, x.size)}
		found := steptest.Check(t, kase, etcd.CheckAlarms(c))
		if x.want == "" && len(found) > 0 || x.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].What, x.want)) {
			t.Errorf("%s: %v", name, found)
		}
		if x.want == "" {
			continue
		}
		step := etcd.Disarm(c)
		if err := step.Run(t.Context(), kase.NewHost(t, kase.Sim(t), step)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s was disarmed: %v", name, err)
		}
	}
}
