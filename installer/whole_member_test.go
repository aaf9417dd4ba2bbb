package installer_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// loses takes a member's data, and its process with it.
func (s *site) loses(member string, all bool) {
	dir := s.cluster.Spec.Etcd.DataDir
	s.sims[member].KillUnit("etcd.service")
	if s.sims[member].RemoveAll(dir + "/member"); all {
		s.sims[member].RemoveAll(dir)
	}
}

// TestALostMemberIsReplaced: an install removes what the store knows of it, adds
// it again, and ends where the first one did.
func TestALostMemberIsReplaced(t *testing.T) {
	each(t, []string{"etcd-hosts"}, func(s *site) {
		first := s.state(true)
		s.must(pipeline.Create, "create")
		made := s.state(true)
		for _, all := range []bool{true, false} {
			s.loses("e2", all)
			s.must(pipeline.Create, "create without a member's data")
			if ran := strings.Join(s.ran(), ", "); ran != "etcd.install on e2" {
				s.t.Errorf("ran %s", ran)
			}
			s.same("a store with a member replaced is as it was", made, s.state(true))
		}
		// A program that could not begin leaves folders, and no log.
		s.loses("e3", true)
		s.sims["e3"].AddDir(s.cluster.Spec.Etcd.DataDir+"/member/snap", 0o700)
		s.must(pipeline.Create, "create without a member's log")
		s.same("a store with a member replaced is as it was", made, s.state(true))
		s.elsewhere()
		s.loses("e3", true)
		s.must(pipeline.Create, "the same from another machine")
		s.must(pipeline.Delete, "delete")
		s.same("a deletion gives back what was there", first, s.state(true))
	})
}

// TestALostMemberOfMostIsRefused: with most members gone nothing is removed, and
// none begins a store of its own.
func TestALostMemberOfMostIsRefused(t *testing.T) {
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.must(pipeline.Create, "create")
		s.loses("e2", true)
		s.loses("e3", true)
		err := s.run(pipeline.Create, nil)
		if err == nil || !strings.Contains(err.Error(), "this member has no data, others have, and most of them do not answer") ||
			!strings.Contains(advised(err), "systemctl start etcd.service") || !strings.Contains(advised(err), "snapshot") {
			s.t.Errorf("%v: %s", err, advised(err))
		}
		for _, e := range []string{"e2", "e3"} {
			if s.sims[e].Read(s.cluster.Spec.Etcd.DataDir+"/member/wal/0.wal") != "" {
				s.t.Errorf("%s began a store of its own", e)
			}
		}
	})
}

// TestAReplacementGoesOn wherever it was cut off: at every ninth command, in a
// short run at every 27th.
func TestAReplacementGoesOn(t *testing.T) {
	every, places := 9, 5
	if testing.Short() {
		every, places = 27, 2
	}
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.must(pipeline.Create, "create")
		made := s.state(false)
		breaks := 0
		for at := 1; ; at += every {
			s.loses("e2", at%2 == 0)
			s.sims["e2"].Break(faultAt(at))
			err := s.run(pipeline.Create, nil)
			s.sims["e2"].Mend()
			s.must(pipeline.Create, "create after a break")
			s.same("a replacement that was cut off ends where a whole one does", made, s.state(false))
			if err == nil {
				break
			}
			breaks++
		}
		if breaks < places {
			s.t.Errorf("only %d places to break", breaks)
		}
		s.loses("e2", true)
		if err := s.run(pipeline.Create, func(n *plan.Node) {
			if n.Step.Meta().Name == "etcd.wait-healthy" {
				n.Step = failing{n.Step, false}
			}
		}); err == nil {
			s.t.Error("nothing failed")
		}
		s.must(pipeline.Create, "create after a failure")
		s.same("a replacement that failed ends where a whole one does", made, s.state(false))
	})
}

func faultAt(n int) conntest.Fault { return conntest.Fault{At: n, Stay: true, After: n%2 == 0} }
