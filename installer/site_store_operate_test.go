package installer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// stores are configs with etcd as services of hosts, and under kubeadm.
var stores = []string{"etcd-hosts", "masters-stacked"}

// defragments lists the hosts whose members are defragmented from now on. None leads then.
func (s *site) defragments() *[]string {
	var all []string
	s.OnCommand = func(host, _ string, c connector.Cmd, _ []byte) {
		if slices.Contains(c.Argv, "defrag") {
			if all = append(all, host); s.Kube.Leader() == host {
				s.t.Errorf("%s is defragmented while it leads", host)
			}
		}
	}
	return &all
}

// TestMoveLeader makes each member lead, of either kind.
func TestMoveLeader(t *testing.T) {
	t.Parallel()
	each(t, stores, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(true)
		for _, m := range s.members() {
			s.Targets = []string{m}
			s.Must(pipeline.MoveEtcdLeader, "move the leadership to "+m)
			if leads := s.Kube.Leader(); leads != m {
				s.t.Errorf("%s leads, not %s", leads, m)
			}
		}
		s.Same("no file has changed", made, s.State(true))
		s.Must(pipeline.MoveEtcdLeader, "move it again")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a second time ran %q", ran)
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = []string{"etcd-" + s.members()[1]} })
		s.Targets = s.members()[:1]
		if err := s.Run(pipeline.MoveEtcdLeader, nil); err == nil || !strings.Contains(err.Error(), s.members()[1]) {
			s.t.Errorf("with a member that is not healthy: %v", err)
		}
	})
}

// TestDefragment: only the members are defragmented for which it is worthwhile, one at a time and
// none while it leads.
func TestDefragment(t *testing.T) {
	t.Parallel()
	each(t, stores, func(s *site) {
		s.Must(pipeline.Create, "create")
		all := s.members()
		run := func(want []string) {
			s.t.Helper()
			got := s.defragments()
			s.Must(pipeline.DefragmentEtcd, "defragment")
			s.OnCommand = nil
			if !slices.Equal(*got, want) {
				s.t.Errorf("defragmented %q, want %q", *got, want)
			}
		}
		s.Kube.Change(func(k *steptest.Kube) {
			k.Sizes, k.InUse = map[string]int64{}, map[string]int64{}
			for _, m := range all {
				k.Sizes[m], k.InUse[m] = 100<<20, 71<<20
			}
			k.InUse[all[1]] = 69 << 20
		})
		run(all[1:2])
		run(nil)
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a second time ran %q", ran)
		}
		s.Flags = []string{"all"}
		run(all)
		if s.Kube.Elections > 0 {
			s.t.Errorf("%d elections", s.Kube.Elections)
		}
		s.Must(pipeline.Create, "create afterwards")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a creation afterwards ran %q", ran)
		}
	})
}

// TestDefragmentResolvesAlarms: with NOSPACE every member is defragmented, and the alarm is
// disarmed. If a database is still full it stays, and the error says what to do.
func TestDefragmentResolvesAlarms(t *testing.T) {
	t.Parallel()
	each(t, stores, func(s *site) {
		s.Must(pipeline.Create, "create")
		all := s.members()
		full := func(used int64) {
			s.Kube.Change(func(k *steptest.Kube) {
				k.Alarm = fmt.Sprintf("memberID:%d alarm:NOSPACE ", steptest.MemberNumber(all[1]))
				k.Sizes, k.InUse = map[string]int64{}, map[string]int64{}
				for _, m := range all {
					k.Sizes[m], k.InUse[m] = s.Cluster.Spec.Etcd.QuotaBackendBytes+4096, used
				}
			})
		}
		full(100 << 20)
		alarms, err := installer.StoreAlarms(s.t.Context(), s.Cluster, s.Hosts(), nil)
		if err != nil || len(alarms) != 1 || alarms[0].Name != all[1] || alarms[0].Kind != "NOSPACE" {
			s.t.Errorf("%+v, %v", alarms, err)
		}
		if err := s.Run(pipeline.DisarmEtcd, nil); err == nil || !strings.Contains(err.Error(), "its quota is 2147483648") || !strings.Contains(advised(err), "kubexm etcd defrag") {
			s.t.Errorf("disarmed although a database is full: %v: %s", err, advised(err))
		}
		got := s.defragments()
		s.Must(pipeline.DefragmentEtcd, "defragment full databases")
		s.OnCommand = nil
		if !slices.Equal(*got, all) || s.Kube.Alarms() != "" {
			s.t.Errorf("defragmented %q, alarms %q", *got, s.Kube.Alarms())
		}
		full(s.Cluster.Spec.Etcd.QuotaBackendBytes)
		if err := s.Run(pipeline.DefragmentEtcd, nil); err == nil || !strings.Contains(advised(err), "quotaBackendBytes") || s.Kube.Alarms() == "" {
			s.t.Errorf("databases that are full of data: %v: %s; alarms %q", err, advised(err), s.Kube.Alarms())
		}
		full(100 << 20)
		s.Must(pipeline.DefragmentEtcd, "the same after objects were deleted")
		s.Kube.Change(func(k *steptest.Kube) {
			k.Alarm = fmt.Sprintf("memberID:%d alarm:CORRUPT ", steptest.MemberNumber(all[1]))
		})
		if err := s.Run(pipeline.DisarmEtcd, nil); err == nil || !strings.Contains(advised(err), "kubexm etcd replace "+all[1]) {
			s.t.Errorf("a member with corrupt data: %v: %s", err, advised(err))
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Alarm = "memberID:7 alarm:CORRUPT " })
		s.Must(pipeline.DisarmEtcd, "disarm the alarm of a member that was removed")
		if s.Kube.Alarms() != "" {
			s.t.Errorf("alarms %q", s.Kube.Alarms())
		}
	})
}

// TestDefragmentStopsAtAnUnhealthyMember, and changes nothing then. A run that resumes continues
// behind the members that were defragmented.
func TestDefragmentStopsAtAnUnhealthyMember(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = []string{"etcd-e3"} })
		got := s.defragments()
		if err := s.Run(pipeline.DefragmentEtcd, nil); err == nil || !strings.Contains(err.Error(), "e3") || len(*got) > 0 {
			s.t.Errorf("defragmented %q: %v", *got, err)
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = nil })
		got = s.defragments()
		heard := s.OnCommand
		s.OnCommand = func(host, step string, c connector.Cmd, in []byte) {
			if heard(host, step, c, in); host == "e2" && slices.Contains(c.Argv, "defrag") {
				s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = []string{"etcd-e2"} })
			}
		}
		if err := s.Run(pipeline.DefragmentEtcd, nil); err == nil || strings.Join(*got, " ") != "e1 e2" {
			s.t.Errorf("defragmented %q: %v", *got, err)
		}
		done := map[string]bool{}
		for _, e := range s.Events {
			done[engine.Key(e.Node, e.Host)] = e.Outcome == engine.Ran
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = nil })
		s.Passed = func(node, host string) bool { return done[engine.Key(node, host)] }
		got = s.defragments()
		s.Must(pipeline.DefragmentEtcd, "defragment the rest")
		s.OnCommand = nil
		if strings.Join(*got, " ") != "e2 e3" && strings.Join(*got, " ") != "e3" {
			s.t.Errorf("a run that goes on defragmented %q", *got)
		}
	})
}
