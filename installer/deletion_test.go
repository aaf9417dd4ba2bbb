package installer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
)

// otherFolders is another place for all data of a cluster.
var otherFolders = []string{"{type: kube", "{dataDir: /srv/etcd, type: kube", "  network:", "  runtime: {containerd: {dataDir: /srv/containerd}}\n  registry: {registryDataDir: /srv/registry}\n  network:"}

// TestADeletionGoesByTheRecord: whatever the config says by now of folders, hosts and
// kinds, what was applied is taken away; from the machine that made the cluster, and
// from another one.
func TestADeletionGoesByTheRecord(t *testing.T) {
	t.Parallel()
	edits := map[string]struct {
		cluster string
		pairs   []string
	}{
		"other folders, etcd by kubeadm":   {"site", otherFolders},
		"other folders, etcd as a service": {"masters", otherFolders},
		"a worker is gone from the config": {"site", []string{"    - {name: w2, address: 192.0.2.22}\n", "", "[w1, w2]", "[w1]"}},
		"another runtime folder":           {"site", []string{"  network:", "  runtime: {containerd: {dataDir: /srv/containerd}}\n  network:"}},
	}
	for _, name := range rows(edits) {
		e := edits[name]
		for _, elsewhere := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", from another machine"}[elsewhere], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := configOf(t, e.cluster)
					s := siteOf(t, config, e.cluster)
					first := s.everything()
					s.Must(pipeline.Create, "create")
					s.Edit(with(t, config, e.pairs...))
					if elsewhere {
						s.elsewhere()
					}
					s.Must(pipeline.Delete, "delete")
					s.Same("a deletion gives back what was there", first, s.everything())
				})
			})
		}
	}
}

// everything is the state of all machines, also of those that the config does not name.
func (s *site) everything() conntest.Snapshot {
	var out conntest.Snapshot
	for name, sim := range s.Sims {
		for _, l := range sim.Snapshot() {
			out = append(out, name+": "+l)
		}
	}
	slices.Sort(out)
	return out
}

// TestADeletionNamesWhatIsLeft: of a creation that has not ended there is no record of
// the config. What an edited config does not name stays on record, and the deletion
// says so.
func TestADeletionNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := configOf(t, "masters")
		s := siteOf(t, config, "masters")
		first := s.State(true)
		if err := s.Run(pipeline.Create, func(n *plan.Node) {
			if n.Step.Meta().Name == "kubeadm.init" {
				n.Step = failing{n.Step, false}
			}
		}); !errors.Is(err, errInjected) {
			t.Fatalf("%v", err)
		}
		s.Edit(with(t, config, "{type: kubexm}", "{dataDir: /srv/etcd, type: kubexm}"))
		err := s.Run(pipeline.Delete, nil)
		var left *op.LeftError
		if !errors.As(err, &left) || !slices.Contains(left.What, "folder /var/lib/etcd") ||
			!strings.Contains(err.Error(), "resources remain on this host, recorded in /var/lib/kubexm/demo/before: folder /var/lib/etcd") ||
			!strings.Contains(advised(err), "with the config that the cluster was created with") {
			t.Fatalf("%v: %s", err, advised(err))
		}
		for _, m := range []string{"m1", "m2", "m3"} {
			if len(s.Sims[m].Below("/var/lib/etcd")) == 0 || len(s.Sims[m].Below("/var/lib/kubexm/demo/before")) == 0 {
				t.Errorf("%s: the data is gone, or what tells of it", m)
			}
		}
		s.Edit(config)
		s.Must(pipeline.Delete, "delete with the config of before")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// dead breaks the wire to a host until it is mended.
func (s *site) dead(host string) { s.Sims[host].Break(conntest.Fault{At: 1, Stay: true}) }

// TestADeletionPassesOverAHost: the others are as they were before, the host is
// remembered with what it was part of, and the next run that reaches it cleans it. A
// short run takes every third.
func TestADeletionPassesOverAHost(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, e := range []struct{ cluster, host string }{
		{"site", "w1"}, {"masters-stacked", "m2"}, {"masters-stacked", "m1"}, {"etcd-hosts", "e2"}, {"site", "m1"},
	} {
		for _, next := range []string{"create", "delete", "reset", "delete with another config"} {
			if tried++; testing.Short() && tried%3 > 0 {
				continue
			}
			t.Run(e.cluster+"/"+e.host+"/"+next, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s := newSite(t, e.cluster); s.passesOver(e.host, next) })
			})
		}
	}
}

// ofHost is a host as it is, but for what the simulated API server keeps on it.
func (s *site) ofHost(host string) conntest.Snapshot {
	return slices.DeleteFunc(s.Sims[host].Snapshot(), func(l string) bool {
		return strings.Contains(l, "/EtcdMember.core/") || strings.Contains(l, "/Node.core/") // a drain changes nodes
	})
}

func (s *site) passesOver(host, next string) {
	first := s.State(true)
	s.Must(pipeline.Create, "create")
	kept := s.ofHost(host)
	s.dead(host)
	if err := s.Run(pipeline.Delete, nil); err == nil {
		s.t.Fatal("a deletion went by a host that does not answer, and nobody asked it to")
	}
	s.Skip = []string{host}
	s.Must(pipeline.Delete, "delete without a host")
	for _, l := range s.State(true) {
		if name, line, _ := strings.Cut(l, ": "); name != host && !slices.Contains(first, l) && !strings.Contains(line, " /run/") {
			s.t.Errorf("left: %s", l)
		}
	}
	if d := conntest.Diff(kept, s.ofHost(host)); d != "" {
		s.t.Errorf("the host that is passed over changed:\n%s", d)
	}
	left, err := state.ReadLeft(s.Workdir)
	if err != nil || len(left) != 1 || left[0].Host != host || left[0].Pending || !strings.Contains(left[0].Config, "name: "+host) {
		s.t.Fatalf("remembered: %+v, %v", left, err)
	}
	s.Skip = nil
	s.Sims[host].Mend()
	switch next {
	case "create":
		s.Must(pipeline.Create, "create with the host")
		s.Must(pipeline.Delete, "delete all of it")
	case "reset":
		s.Must(pipeline.Reset, "reset with the host")
	case "delete with another config":
		pairs := otherFolders[:2]
		if strings.Contains(s.config, "/data/etcd") {
			pairs = []string{"/data/etcd", "/srv/etcd"}
		}
		s.Edit(with(s.t, s.config, pairs...))
		fallthrough
	case "delete":
		s.Must(pipeline.Delete, "delete with the host")
	}
	s.Same("all hosts are as they were", first, s.State(true))
	if left, err := state.ReadLeft(s.Workdir); err != nil || len(left) > 0 {
		s.t.Errorf("still remembered: %+v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(s.Workdir, "left.json")); err == nil {
		s.t.Error("the memory of nothing is a file")
	}
}

// TestADeletionThatBreaksOffLeavesNobody: a host that was to be passed over is still
// part of the cluster, and the next creation takes it for that.
func TestADeletionThatBreaksOffLeavesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		made := s.State(false)
		s.Skip = []string{"w1"}
		if err := s.Run(pipeline.Delete, func(n *plan.Node) {
			if n.Step.Meta().Name == "kubernetes.drain-nodes" {
				n.Step = failing{n.Step, false}
			}
		}); err == nil {
			t.Fatal("nothing failed")
		}
		s.Skip = nil
		s.Must(pipeline.Create, "create again")
		s.Same("nothing was cleaned", made, s.State(false))
	})
}

// TestWhoCannotBePassedOver: nobody of that name, all, and who has the data that is to
// stay.
func TestWhoCannotBePassedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		before := s.State(true)
		for skip, want := range map[string]string{
			"w9":          "no host of the cluster is called w9: it has r1, m1, w1, w2",
			"r1,m1,w1,w2": "all hosts would be skipped",
		} {
			s.Skip = strings.Split(skip, ",")
			if err := s.Run(pipeline.Delete, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", skip, err)
			}
		}
		s.Skip = []string{"m1"}
		s.preserving(func() {
			if err := s.Run(pipeline.Delete, nil); err == nil || !strings.Contains(err.Error(), "host m1 (master) cannot be skipped while etcd's data is preserved") {
				t.Errorf("%v", err)
			}
		})
		s.Same("nothing changed", before, s.State(true))
	})
}

// TestADeletionOfAnotherClusterIsRefused: a config of another name does not take this
// cluster away.
func TestADeletionOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		before := s.State(true)
		s.Edit(with(t, s.config, "name: demo", "name: other"))
		s.elsewhere()
		var other *state.OtherClusterError
		if err := s.Run(pipeline.Delete, nil); !errors.As(err, &other) || err.Error() != "the masters belong to cluster demo, but the config describes cluster other" {
			t.Errorf("%v", err)
		}
		s.Same("nothing changed", before, s.State(true))
	})
}
