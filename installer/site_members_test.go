package installer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// membersAre compares the members of an etcd that runs as services, none of which is a learner, and
// those that each API server knows.
func (s *site) membersAre(want ...string) {
	s.t.Helper()
	if got := slices.Sorted(slices.Values(s.Kube.Members())); !slices.Equal(got, want) {
		s.t.Errorf("members %q, want %q", got, want)
	}
	var servers []string
	for _, h := range part.StoreOf(s.Cluster).Members {
		if slices.Contains(want, h.Name) {
			servers = append(servers, "https://"+h.Address+":2379")
		}
	}
	for _, m := range s.Cluster.HostsWith("master") {
		text := s.Sims[m.Name].Read("/etc/kubernetes/manifests/kube-apiserver.yaml")
		_, after, _ := strings.Cut(text, "--etcd-servers=")
		got := strings.Split(strings.TrimSpace(after), ",")
		slices.Sort(got)
		if text != "" && !slices.Equal(got, servers) {
			s.t.Errorf("the API server of %s uses %s, want %q", m.Name, got, servers)
		}
	}
}

// TestMembersJoinAndLeave: etcd on hosts of its own grows from three members to five and shrinks
// again, also by its first member, which leads, and by one that does not answer.
func TestMembersJoinAndLeave(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		everything := s.everything()
		s.Must(pipeline.Create, "create")
		before := s.hostsState()
		s.membersAre("e1", "e2", "e3")
		five := lists(s.t, s.config, "etcd", "e4", "e5")
		s.Edit(five)
		blank := s.everything()
		if err := s.adds("e4"); err == nil || !strings.Contains(err.Error(), "etcd would have 4 members, and tolerates no more failures than with 3") {
			s.t.Errorf("four members: %v", err)
		}
		s.mustChange("add", s.adds())
		s.membersAre("e1", "e2", "e3", "e4", "e5")
		for _, m := range []string{"m1", "m2", "m3"} {
			if n := s.restarts(m); n != 1 {
				s.t.Errorf("the API server of %s was started again %d times for two members", m, n)
			}
		}
		s.quiet("a creation after members have joined")
		s.mustChange("add again", s.adds("e4", "e5"))
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("members that are part of the cluster: ran %q", ran)
		}
		s.mustChange("delete them", s.deletes("e4", "e5"))
		for _, h := range []string{"e4", "e5"} {
			s.Same("host "+h+" after it has left", hostIn(blank, h), s.ofHost(h))
		}
		s.membersAre("e1", "e2", "e3")
		s.Edit(s.config)
		s.Same("the other hosts", before, s.hostsState())
		s.Edit(five)
		s.mustChange("add them again", s.adds())
		s.membersAre("e1", "e2", "e3", "e4", "e5")
		elections := s.Kube.Elections
		s.mustChange("delete the first two", s.deletes("e1", "e2"))
		s.membersAre("e3", "e4", "e5")
		if s.Kube.Elections != elections {
			s.t.Errorf("%d elections", s.Kube.Elections-elections)
		}
		for _, h := range []string{"e1", "e2"} {
			s.Same("host "+h+" after it has left", hostIn(everything, h), s.ofHost(h))
		}
		without, err := manifest.RemoveHosts([]byte(five), []string{"e1", "e2"})
		if err != nil {
			s.t.Fatal(err)
		}
		s.Edit(string(without))
		s.quiet("a creation after members have left")
		s.PowerOff("e4")
		s.mustChange("delete a dead member", s.Change(pipeline.DeleteNodes, sitetest.Membership{Names: []string{"e4"}, Dead: true}))
		s.membersAre("e3", "e5")
		s.PowerOn("e4")
		s.mustChange("add it again", s.adds())
		s.membersAre("e3", "e4", "e5")
		s.Edit(five)
		s.mustChange("add the first two again", s.adds())
		s.membersAre("e1", "e2", "e3", "e4", "e5")
		s.Must(pipeline.Delete, "delete")
		for _, h := range s.Cluster.Spec.Hosts {
			was := hostIn(everything, h.Name)
			if len(was) == 0 {
				was = hostIn(blank, h.Name)
			}
			s.Same("host "+h.Name+" after the deletion", was, s.ofHost(h.Name))
		}
	})
}

// TestMembersOnMasters: where etcd's services run on the masters, a master brings its member and
// takes it away.
func TestMembersOnMasters(t *testing.T) {
	t.Parallel()
	each(t, []string{"masters"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		s.Edit(lists(s.t, s.config, "master", "m8", "m9"))
		blank := s.everything()
		s.mustChange("add", s.adds())
		s.membersAre("m1", "m2", "m3", "m8", "m9")
		s.quiet("a creation after masters have joined")
		s.mustChange("delete", s.deletes("m1", "m8"))
		s.Same("host m8 after it has left", hostIn(blank, "m8"), s.ofHost("m8"))
		s.membersAre("m2", "m3", "m9")
	})
}

// TestTheLastMemberStays.
func TestTheLastMemberStays(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		if err := s.deletes("e1", "e2", "e3"); err == nil || !strings.Contains(err.Error(), "it is the last etcd member of the cluster") {
			s.t.Errorf("all members leave: %v", err)
		}
		s.PowerOff("e2")
		if err := s.deletes("e1"); err == nil {
			s.t.Error("a member left while another one was lost")
		}
		s.membersAre("e1", "e2", "e3")
	})
}

// restarts returns how often the manifest of a host's API server was written again.
func (s *site) restarts(host string) (n int) {
	for _, e := range s.ran() {
		if e == "kubeadm.update-etcd-servers on "+host {
			n++
		}
	}
	return n
}
