package installer_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// adds adds hosts to the cluster, and deletes deletes some.
func (s *site) adds(names ...string) error {
	return s.Change(pipeline.AddNodes, sitetest.Membership{Names: names})
}

func (s *site) deletes(names ...string) error {
	return s.Change(pipeline.DeleteNodes, sitetest.Membership{Names: names})
}

// mustChange fails the test if a change of hosts has failed.
func (s *site) mustChange(when string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", when, err)
	}
}

// quiet reports an error if a creation has anything to do.
func (s *site) quiet(when string) {
	s.t.Helper()
	s.Must(pipeline.Create, when)
	if ran := s.ran(); len(ran) > 0 {
		s.t.Errorf("%s ran %q", when, ran)
	}
}

// lists returns a config of testdata/clusters with further hosts of a role.
func lists(t *testing.T, config, role string, hosts ...string) string {
	t.Helper()
	var lines string
	for _, h := range hosts {
		lines += "    - {name: " + h + ", address: 192.0.2." + map[byte]string{'m': "1", 'w': "2", 'e': "3"}[h[0]] + h[1:] + "}\n"
	}
	config = with(t, config, "  ssh: {", lines+"  ssh: {")
	list := regexp.MustCompile(`([{ ]` + role + `: \[)((?:'[^']*'|"[^"]*"|[^\]'"])*)\]`)
	if !list.MatchString(config) {
		t.Fatalf("no role %s", role)
	}
	return list.ReplaceAllString(config, "${1}${2}, "+strings.Join(hosts, ", ")+"]")
}

// TestNodesJoinAndLeave: a worker and a master join clusters of each kind, a creation has
// nothing left to do, and after they have left everything is as before.
func TestNodesJoinAndLeave(t *testing.T) {
	t.Parallel()
	for _, name := range thirdInShort([]string{"masters-stacked", "etcd-hosts", "load-balancers", "load-balancers-workers", "kube-vip", "no-registry", "calico", "cilium"}) {
		each(t, []string{name}, func(s *site) {
			s.Must(pipeline.Create, "create")
			before := s.hostsState()
			masters := []string{"m8", "m9"} // an odd number of members with the others
			if len(s.Cluster.HostsWith("master")) == 2 {
				masters = masters[:1]
			}
			for _, x := range []struct {
				role  string
				hosts []string
			}{{"worker", []string{"w7"}}, {"worker", []string{"w7", "w8"}}, {"master", masters}} {
				s.Edit(lists(s.t, s.config, x.role, x.hosts...))
				blank := s.everything()
				s.mustChange("add", s.adds())
				if s.ran() == nil {
					s.t.Fatal("nothing was done")
				}
				s.quiet("a creation after hosts have joined")
				s.mustChange("add again", s.adds(x.hosts...))
				if ran := s.ran(); len(ran) > 0 {
					s.t.Errorf("hosts that are part of the cluster: ran %q", ran)
				}
				s.mustChange("delete", s.deletes(x.hosts...))
				for _, h := range x.hosts {
					s.Same("host "+h+" after it has left", hostIn(blank, h), s.ofHost(h))
				}
				s.Edit(s.config)
				s.Same("the other hosts", before, s.hostsState())
				s.Must(pipeline.Create, "a creation after hosts have left")
				for _, ran := range s.ran() { // the config is written in another way, and recorded
					if !strings.HasPrefix(ran, "kubernetes.record-applied ") && !strings.HasPrefix(ran, "kubernetes.keep-") {
						s.t.Errorf("a creation after hosts have left ran %q", ran)
					}
				}
			}
		})
	}
}

// hostsState is the state of the hosts of the config, without what every change leaves: the
// number of the record and the history, and without keys that each installation makes.
func (s *site) hostsState() conntest.Snapshot {
	return slices.DeleteFunc(s.State(false), func(l string) bool {
		return strings.Contains(l, "/ConfigMap.core/kube-system/kubexm ") || strings.Contains(l, "kube-vip") // each has a key of its own
	})
}

// hostIn is the part of a state of all machines that is about one host.
func hostIn(all conntest.Snapshot, host string) conntest.Snapshot {
	var out conntest.Snapshot
	for _, l := range all {
		if rest, ok := strings.CutPrefix(l, host+": "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// TestMastersLeave: any master can leave, also the first one, and one that does not answer. The
// rest goes on, a creation afterwards has nothing to do, and a deletion gives back what was there.
func TestMastersLeave(t *testing.T) {
	t.Parallel()
	for _, name := range thirdInShort([]string{"masters-stacked", "etcd-hosts", "load-balancers", "load-balancers-workers", "kube-vip"}) {
		each(t, []string{name}, func(s *site) {
			blank := s.everything()
			s.Must(pipeline.Create, "create")
			first := s.Cluster.HostsWith("master")[0].Name
			without := func(names ...string) string {
				out, err := manifest.RemoveHosts([]byte(s.config), names)
				if err != nil {
					s.t.Fatal(err)
				}
				return string(out)
			}
			elections := s.Kube.Elections
			s.mustChange("delete the first master", s.deletes(first))
			if s.Kube.Elections != elections {
				s.t.Errorf("%d elections", s.Kube.Elections-elections)
			}
			if len(s.Kube.Stranded) > 0 {
				s.t.Errorf("the API server of %q ran without its etcd member", s.Kube.Stranded)
			}
			s.Same("the first master after it has left", hostIn(blank, first), s.ofHost(first))
			s.Edit(without(first))
			s.quiet("a creation without the first master")
			if l := s.leads(); slices.Contains(l, first) {
				s.t.Errorf("leads %q", l)
			}
			// It comes back as the last one, and the next first one dies.
			second := s.Cluster.HostsWith("master")[0].Name
			s.Edit(s.config) // it must not be listed first: kubeadm init would run there
			if err := s.Change(pipeline.AddNodes, sitetest.Membership{AllowEven: true}); err == nil || !strings.Contains(err.Error(), "is listed first in spec.roleGroups.master") {
				s.t.Errorf("a new master that is listed first: %v", err)
			}
			s.Edit(lists(s.t, without(first), "master", first))
			s.mustChange("add the first master again", s.Change(pipeline.AddNodes, sitetest.Membership{AllowEven: true}))
			if len(s.Cluster.HostsWith("master")) < 3 { // etcd has no quorum without the second
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion gives back what was there", blank, s.everything())
				return
			}
			s.Kube.Put(pod("web", second))
			s.PowerOff(second)
			s.mustChange("delete a dead master", s.Change(pipeline.DeleteNodes, sitetest.Membership{Names: []string{second}, Dead: true}))
			s.mustChange("delete it again", s.Change(pipeline.DeleteNodes, sitetest.Membership{Names: []string{second}, Dead: true}))
			if len(s.Kube.Orphaned) > 0 { // Kubernetes deletes their pods a minute later
				s.t.Errorf("the pods of %q were left to Kubernetes", s.Kube.Orphaned)
			}
			if ran := s.ran(); len(ran) > 0 {
				s.t.Errorf("a host that has left: ran %q", ran)
			}
			// The machine comes back: it is cleaned, and joins again.
			s.PowerOn(second)
			s.Edit(lists(s.t, without(first, second), "master", first, second))
			s.mustChange("add the dead master again", s.Change(pipeline.AddNodes, sitetest.Membership{AllowEven: true}))
			s.Must(pipeline.Delete, "delete")
			s.Same("a deletion gives back what was there", blank, s.everything())
		})
	}
}

// TestChangesOfHostsGoOn wherever they were cut off, on the host that joins or leaves, on a master
// or on another host: the same command ends where an uncut one does. It is cut at every 29th
// command, in a short run at every 87th.
func TestChangesOfHostsGoOn(t *testing.T) {
	t.Parallel()
	every, places := 29, 6
	if testing.Short() {
		every, places = 87, 3
	}
	for _, x := range thirdInShort([]struct{ cluster, role, host, cut string }{
		{"masters-stacked", "worker", "w7", "w7"}, {"masters-stacked", "worker", "w7", "m1"}, {"masters-stacked", "master", "m8", "m8"},
		{"masters-stacked", "master", "m8", "m1"}, {"etcd-hosts", "etcd", "e4", "e4"}, {"etcd-hosts", "etcd", "e4", "e1"}, {"etcd-hosts", "etcd", "e4", "m2"}, {"load-balancers-workers", "master", "m8", "w1"}, {"kube-vip", "master", "m8", "m8"},
	}) {
		t.Run(x.cluster+"/"+x.host+"/"+x.cut, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, x.cluster)
				s.Must(pipeline.Create, "create")
				add := func() error {
					return s.Change(pipeline.AddNodes, sitetest.Membership{Names: []string{x.host}, AllowEven: true})
				}
				without := s.hostsState()
				s.Edit(lists(t, s.config, x.role, x.host))
				blank := hostIn(s.everything(), x.host)
				s.mustChange("add", add())
				with := s.hostsState()
				s.mustChange("delete", s.deletes(x.host))
				breaks := 0
				for at := 1; ; at += every {
					s.Sims[x.cut].Break(faultAt(at))
					cutAdd := add()
					s.Sims[x.cut].Mend()
					s.mustChange("add that was cut off", add())
					s.Same("what was added after a cut", with, s.hostsState())
					s.Sims[x.cut].Break(faultAt(at))
					cutDelete := s.deletes(x.host)
					s.Sims[x.cut].Mend()
					if cutDelete != nil {
						s.mustChange("delete that was cut off", s.deletes(x.host))
					}
					s.Same("the host after it has left", blank, s.ofHost(x.host))
					s.Edit(s.config)
					s.Same("the others", without, s.hostsState())
					s.Edit(lists(t, s.config, x.role, x.host))
					if cutAdd == nil && cutDelete == nil {
						break
					}
					breaks++
				}
				if want := map[bool]int{true: places, false: places / 3}[x.cut == x.host]; breaks < want {
					t.Errorf("only %d places to cut", breaks)
				}
			})
		})
	}
}
