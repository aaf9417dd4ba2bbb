package installer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// guarded checks with every command that etcd has a quorum, and that no member of the given
// ones is restarted. Further watchers see the commands, too.
func (s *site) guarded(unmoved []string, further ...func(host string, c connector.Cmd)) {
	s.OnCommand = func(host, step string, c connector.Cmd, _ []byte) {
		if run, voters := s.Kube.Quorum(); run <= voters/2 {
			s.t.Errorf("before %v of %s on %s %d of %d members run", c.Argv, step, host, run, voters)
		}
		if c.Verb == connector.VerbUnitRestart && c.Args()[0] == "etcd.service" && slices.Contains(unmoved, host) {
			s.t.Errorf("etcd was restarted on %s", host)
		}
		for _, f := range further {
			f(host, c)
		}
	}
}

// TestALearnerThatDoesNotCatchUp is removed again, and its data as well. Afterwards the same
// command replaces the member.
func TestALearnerThatDoesNotCatchUp(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(true)
		s.loses("e2", true)
		s.Kube.Change(func(k *steptest.Kube) { k.Stuck = "e2" })
		s.guarded([]string{"e1", "e3"})
		err := s.Run(pipeline.Create, nil)
		if err == nil || !strings.Contains(err.Error(), "log entries behind the leader") || !strings.Contains(advised(err), "removed it again") {
			s.t.Errorf("%v: %s", err, advised(err))
		}
		if all := strings.Join(s.Kube.Members(), " "); all != "e1 e3" {
			s.t.Errorf("the members are %s", all)
		}
		for _, path := range []string{"/member/wal/0.wal", "/../../etc/etcd/join.env"} {
			if s.Sims["e2"].Read(s.Cluster.Spec.Etcd.DataDir+path) != "" {
				s.t.Errorf("%s is left", path)
			}
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Stuck = "" })
		s.Must(pipeline.Create, "create with a learner that catches up")
		s.OnCommand = nil
		s.Same("a member that was replaced at last", made, s.State(true))
	})
}

// TestAJoinGoesOn from each of its states: the learner was added and not started, was started
// and not promoted, was promoted and its host still has the file with which it joined.
func TestAJoinGoesOn(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made := s.State(true)
		for _, at := range thirdInShort([]struct {
			command string
			after   bool
			members string
		}{
			{"member add", true, "e1 e3 e2?"}, {"member promote", false, "e1 e3 e2?"}, {"member promote", true, "e1 e3 e2"},
		}) {
			s.loses("e2", true)
			asked := 0
			s.guarded(nil, func(host string, c connector.Cmd) {
				if !strings.Contains(strings.Join(c.Argv, " "), at.command) {
					return
				}
				if asked++; asked == 3 { // each of the other members has refused it once
					s.Sims[host].Break(conntest.Fault{At: 1, Stay: true, After: at.after})
				}
			})
			err := s.Run(pipeline.Create, nil)
			s.OnCommand = nil
			s.Sims["e2"].Mend()
			if all := strings.Join(s.Kube.Members(), " "); err == nil || all != at.members {
				s.t.Errorf("%s, after %t: the members are %s: %v", at.command, at.after, all, err)
			}
			s.guarded([]string{"e1", "e3"})
			s.Must(pipeline.Create, "create after a break at "+at.command)
			s.OnCommand = nil
			s.Same("a replacement that was cut off at "+at.command, made, s.State(true))
			if all := strings.Join(s.Kube.Members(), " "); all != "e1 e3 e2" {
				s.t.Errorf("%s: the members are %s", at.command, all)
			}
		}
	})
}

// TestANewMemberRestartsNobody: members that have data keep the list of members in their units,
// and new ones list those that etcd has when they join.
func TestANewMemberRestartsNobody(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		units := map[string]string{}
		for _, e := range []string{"e1", "e2", "e3"} {
			units[e] = s.Sims[e].Read("/etc/systemd/system/etcd.service")
		}
		s.Edit(with(s.t, s.config, "  ssh:", "    - {name: e4, address: 192.0.2.34}\n    - {name: e5, address: 192.0.2.35}\n  ssh:", "e[1:3]", "e[1:5]"))
		s.guarded([]string{"e1", "e2", "e3"})
		s.Must(pipeline.Create, "create with two more members")
		s.OnCommand = nil
		for e, unit := range units {
			if s.Sims[e].Read("/etc/systemd/system/etcd.service") != unit {
				s.t.Errorf("the unit of %s was written", e)
			}
		}
		if all := s.Kube.Members(); len(all) != 5 || strings.Contains(strings.Join(all, " "), "?") {
			s.t.Errorf("the members are %s", all)
		}
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a second creation ran %q", ran)
		}
	})
}
