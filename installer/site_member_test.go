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
	dir := s.Cluster.Spec.Etcd.DataDir
	s.Sims[member].KillUnit("etcd.service")
	if s.Sims[member].RemoveAll(dir + "/member"); all {
		s.Sims[member].RemoveAll(dir)
	}
}

// TestALostMemberIsReplaced: an install removes what the store knows of it, adds
// it again, and ends where the first one did.
func TestALostMemberIsReplaced(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		made := s.State(true)
		for _, all := range []bool{true, false} {
			s.loses("e2", all)
			s.Must(pipeline.Create, "create without a member's data")
			if ran := strings.Join(s.ran(), ", "); ran != "etcd.install on e2" {
				s.t.Errorf("ran %s", ran)
			}
			s.Same("a store with a member replaced is as it was", made, s.State(true))
		}
		// A program that could not begin leaves folders, and no log.
		s.loses("e3", true)
		s.Sims["e3"].AddDir(s.Cluster.Spec.Etcd.DataDir+"/member/snap", 0o700)
		s.Must(pipeline.Create, "create without a member's log")
		s.Same("a store with a member replaced is as it was", made, s.State(true))
		s.elsewhere()
		s.loses("e3", true)
		s.Must(pipeline.Create, "the same from another machine")
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// TestALostMemberOfMostIsRefused: with most members gone nothing is removed, and
// none begins a store of its own.
func TestALostMemberOfMostIsRefused(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		s.loses("e2", true)
		s.loses("e3", true)
		err := s.Run(pipeline.Create, nil)
		if err == nil || !strings.Contains(err.Error(), "this host has no data of etcd, and the members that have some have no quorum") ||
			!strings.Contains(advised(err), "systemctl start etcd.service") || !strings.Contains(advised(err), "snapshot") {
			s.t.Errorf("%v: %s", err, advised(err))
		}
		for _, e := range []string{"e2", "e3"} {
			if s.Sims[e].Read(s.Cluster.Spec.Etcd.DataDir+"/member/wal/0.wal") != "" {
				s.t.Errorf("%s began a store of its own", e)
			}
		}
	})
}

// TestAReplacementGoesOn wherever it was cut off: at every ninth command, in a
// short run at every 54th.
func TestAReplacementGoesOn(t *testing.T) {
	t.Parallel()
	every, places := 9, 5
	if testing.Short() {
		every, places = 54, 1
	}
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(false)
		breaks := 0
		for at := 1; ; at += every {
			s.loses("e2", at%2 == 0)
			s.Sims["e2"].Break(faultAt(at))
			err := s.Run(pipeline.Create, nil)
			s.Sims["e2"].Mend()
			s.Must(pipeline.Create, "create after a break")
			s.Same("a replacement that was cut off ends where a whole one does", made, s.State(false))
			if err == nil {
				break
			}
			breaks++
		}
		if breaks < places {
			s.t.Errorf("only %d places to break", breaks)
		}
		s.loses("e2", true)
		if err := s.Run(pipeline.Create, func(n *plan.Node) {
			if n.Step.Meta().Name == "etcd.wait-healthy" {
				n.Step = failing{n.Step, false}
			}
		}); err == nil {
			s.t.Error("nothing failed")
		}
		s.Must(pipeline.Create, "create after a failure")
		s.Same("a replacement that failed ends where a whole one does", made, s.State(false))
	})
}

func faultAt(n int) conntest.Fault { return conntest.Fault{At: n, Stay: true, After: n%2 == 0} }
