package installer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestReplaceMember replaces members that have lost their data, whose data is corrupt, that lead,
// or that are well. The hosts are as before.
func TestReplaceMember(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(true)
		s.Targets = []string{"e2"}
		states := map[string]func(){
			"without a folder": func() { s.loses("e2", true) },
			"without data":     func() { s.loses("e2", false) },
			"well":             func() {},
			"leading": func() {
				s.Must(pipeline.MoveEtcdLeader, "move the leadership")
			},
			"corrupt": func() {
				s.Kube.Change(func(k *steptest.Kube) {
					k.Alarm = fmt.Sprintf("memberID:%d alarm:CORRUPT ", steptest.MemberNumber("e2"))
				})
			},
		}
		for _, name := range rows(states) {
			states[name]()
			restarts := 0
			s.guarded([]string{"e1", "e3"}, func(host string, c connector.Cmd) {
				if c.Verb == connector.VerbUnitStop && s.Kube.Leader() == host {
					s.t.Errorf("%s: etcd was stopped on %s while it leads", name, host)
				}
				if c.Verb == connector.VerbUnitRestart {
					restarts++
				}
			})
			s.Must(pipeline.ReplaceEtcdMember, "replace a member: "+name)
			s.OnCommand = nil
			if all := strings.Join(s.Kube.Members(), " "); all != "e1 e3 e2" || restarts != 1 {
				s.t.Errorf("%s: the members are %s, %d restarts", name, all, restarts)
			}
			s.Same(name+": a replaced member is as it was", made, s.State(true))
		}
		s.Must(pipeline.Create, "create afterwards")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a creation afterwards ran %q", ran)
		}
	})
}

// TestReplaceMemberIsRefused where etcd has no quorum or another member is not healthy, and where
// the host lacks more than the data. Nothing is changed then.
func TestReplaceMemberIsRefused(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		s.Targets = []string{"e2"}
		refused := func(when, what, advice string) {
			s.t.Helper()
			before := s.State(true)
			err := s.Run(pipeline.ReplaceEtcdMember, nil)
			if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(advised(err), advice) {
				s.t.Errorf("%s: %v: %s", when, err, advised(err))
			}
			s.Same(when+" changes nothing", before, s.State(true))
		}
		s.loses("e2", true)
		s.loses("e3", true)
		refused("two of three lost", "there is no quorum", "snapshot")
		s.Sims["e2"].RemoveAll("/etc/etcd/pki")
		refused("a host without keys", "lost more than etcd's data", "kubexm install")
	})
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Edit(with(s.t, s.config, "  ssh:", "    - {name: e4, address: 192.0.2.34}\n    - {name: e5, address: 192.0.2.35}\n  ssh:", "e[1:3]", "e[1:5]"))
		s.Must(pipeline.Create, "create five members")
		s.loses("e2", true)
		s.loses("e3", true)
		s.Targets = []string{"e2"}
		err := s.Run(pipeline.ReplaceEtcdMember, nil)
		if err == nil || !strings.Contains(err.Error(), "member e3 is not healthy") || !strings.Contains(advised(err), "kubexm install") {
			s.t.Errorf("two of five lost: %v: %s", err, advised(err))
		}
		s.Targets = nil
		s.guarded([]string{"e1", "e4", "e5"})
		s.Must(pipeline.Create, "create replaces both")
		s.OnCommand = nil
		if all := s.Kube.Members(); len(all) != 5 || strings.Contains(strings.Join(all, " "), "?") {
			s.t.Errorf("the members are %q", all)
		}
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a second creation ran %q", ran)
		}
	})
}

// TestReplaceMemberGoesOn wherever it was cut off: at every seventh command, in a short run at
// every 42nd.
func TestReplaceMemberGoesOn(t *testing.T) {
	t.Parallel()
	every, places := 7, 6
	if testing.Short() {
		every, places = 42, 1
	}
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(false)
		s.Targets = []string{"e2"}
		breaks := 0
		for at := 1; ; at += every {
			if at%2 == 0 {
				s.loses("e2", true)
			}
			s.guarded([]string{"e1", "e3"})
			s.Sims["e2"].Break(faultAt(at))
			err := s.Run(pipeline.ReplaceEtcdMember, nil)
			s.Sims["e2"].Mend()
			s.Must(pipeline.ReplaceEtcdMember, "replace after a break")
			s.OnCommand = nil
			s.Same("a replacement that was cut off ends where a whole one does", made, s.State(false))
			if err == nil {
				break
			}
			breaks++
		}
		if breaks < places {
			s.t.Errorf("only %d places to break", breaks)
		}
	})
}
