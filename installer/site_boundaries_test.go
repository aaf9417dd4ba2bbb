package installer_test

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// killedBefore runs an operation whose kubexm is killed where it begins the at-th step on a host, and reports
// whether the operation came so far. What is killed undoes nothing: no host hears of it any more.
func (s *site) killedBefore(at int, run func() error) bool {
	var mu sync.Mutex
	begun, killed := map[string]bool{}, false
	s.OnCommand = func(host, node string, _ connector.Cmd, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		if node == "" || begun[node+host] {
			return
		}
		begun[node+host] = true
		if len(begun) == at {
			killed = true
			for _, sim := range s.Sims {
				sim.Break(conntest.Fault{At: 1, Stay: true})
			}
		}
	}
	err := run()
	s.OnCommand = nil
	for _, sim := range s.Sims {
		sim.Mend()
	}
	if killed != (err != nil) {
		s.t.Fatalf("place %d: killed %t, %v", at, killed, err)
	}
	return killed
}

// TestOperationsGoOnFromEachStep: kubexm is killed where a step begins, and the same command ends where an uncut
// one does. It takes every third step, in a short run every 47th; KUBEXM_EVERY=1 takes all.
func TestOperationsGoOnFromEachStep(t *testing.T) {
	t.Parallel()
	every := 3
	if testing.Short() {
		every = 47
	}
	if text := os.Getenv("KUBEXM_EVERY"); text != "" {
		var err error
		if every, err = strconv.Atoi(text); err != nil || every < 1 {
			t.Fatalf("KUBEXM_EVERY=%s: %v", text, err)
		}
	}
	for _, x := range []struct {
		cluster, role string
		hosts         []string
	}{
		{"site", "worker", []string{"w7"}}, {"masters-stacked", "master", []string{"m8"}}, {"etcd-hosts", "etcd", []string{"e4", "e5"}},
	} {
		t.Run(x.role, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, x.cluster)
				s.Must(pipeline.Create, "create")
				without := s.hostsState()
				s.Edit(lists(t, s.config, x.role, x.hosts...))
				add := func() error {
					return s.Change(pipeline.AddNodes, sitetest.Membership{Names: x.hosts, AllowEven: true})
				}
				remove := func() error { return s.deletes(x.hosts...) }
				s.mustChange("add", add())
				with := s.hostsState()
				s.mustChange("delete", remove())
				kills := 0
				for at, more := 1, true; more; at += every {
					more = s.killedBefore(at, add)
					s.mustChange("add after a kill", add())
					s.Same("what was added after a kill", with, s.hostsState())
					gone := s.killedBefore(at, remove)
					s.mustChange("delete after a kill", remove())
					s.Edit(s.config)
					s.Same("the cluster after a deletion that was killed", without, s.hostsState())
					s.Edit(lists(t, s.config, x.role, x.hosts...))
					if more = more || gone; more {
						kills++
					}
				}
				if t.Logf("%d places", kills); kills < 30/every {
					t.Errorf("only %d places", kills)
				}
			})
		})
	}
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, "masters-stacked")
			s.Must(pipeline.Create, "create")
			whole := s.hostsState()
			kills := 0
			for at := 1; s.killedBefore(at, func() error { return s.Run(pipeline.RestartAll, nil) }); at += every {
				kills++
				s.Must(pipeline.RestartAll, "restart after a kill")
				s.Same("the cluster after a restart that was killed", whole, s.hostsState())
			}
			if t.Logf("%d places", kills); kills < 30/every {
				t.Errorf("only %d places", kills)
			}
		})
	})
}
