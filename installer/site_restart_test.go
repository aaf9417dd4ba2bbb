package installer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// stops lists what is stopped on hosts from now on, "etcd.service on e1". No member is
// stopped while it leads others.
func (s *site) stops() *[]string {
	var all []string
	s.OnCommand = func(host, _ string, c connector.Cmd, _ []byte) {
		switch {
		case c.Verb == connector.VerbUnitRestart:
			if name := c.Args()[0]; name == "etcd.service" && s.Kube.Leader() == host {
				s.t.Errorf("%s was stopped while it leads", host)
			} else {
				all = append(all, name+" on "+host)
			}
		case len(c.Argv) == 3 && c.Argv[1] == "stopp":
			part := strings.TrimPrefix(c.Argv[2][strings.Index(c.Argv[2], "-")+3:], "-")
			all = append(all, strings.TrimSuffix(part, "-"+host)+" on "+host)
		}
	}
	return &all
}

// TestRestart restarts all parts of clusters, in the order in which nothing is lost. The
// hosts are as before, and a creation afterwards has nothing to do.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]string{
		"etcd-hosts": {
			"restart-etcd": "etcd.service on e1, etcd.service on e2, etcd.service on e3",
			"restart-control-plane": "kube-apiserver on m1, kube-controller-manager on m1, kube-scheduler on m1, kube-apiserver on m2, " +
				"kube-controller-manager on m2, kube-scheduler on m2, kube-apiserver on m3, kube-controller-manager on m3, kube-scheduler on m3",
			"restart-nodes":   "kubelet.service on m1, kubelet.service on m2, kubelet.service on m3, kubelet.service on w1",
			"restart-runtime": "containerd.service on m1, containerd.service on m2, containerd.service on m3, containerd.service on w1",
		},
		"masters-stacked": {"restart-etcd": "etcd on m1, etcd on m2, etcd on m3"},
		"single":          {"restart-etcd": "etcd on node1", "restart-nodes": "kubelet.service on node1"},
	} {
		each(t, []string{name}, func(s *site) {
			s.Must(pipeline.Create, "create")
			made := s.State(true)
			for _, p := range pipeline.Restarts() {
				got := s.stops()
				s.Must(func() plan.Pipeline { return p }, p.Name)
				s.OnCommand = nil
				if all := strings.Join(*got, ", "); want[p.Name] != "" && all != want[p.Name] {
					s.t.Errorf("%s stopped %s, want %s", p.Name, all, want[p.Name])
				}
				if len(*got) == 0 {
					s.t.Errorf("%s stopped nothing", p.Name)
				}
				s.Same(p.Name+" changes no file", made, s.State(true))
			}
			if s.Kube.Elections > 0 {
				s.t.Errorf("%d members were stopped that led others", s.Kube.Elections)
			}
			s.Must(pipeline.Create, "create afterwards")
			if ran := s.ran(); len(ran) > 0 {
				s.t.Errorf("a creation afterwards ran %q", ran)
			}
		})
	}
}

// TestRestartLeavesTheRestAlone: with a member that is not healthy no other is stopped, and
// the error names it. Once it is, the same command does all of it.
func TestRestartLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"etcd-hosts", "masters-stacked"} {
		each(t, []string{name}, func(s *site) {
			s.Must(pipeline.Create, "create")
			second := s.members()[1]
			for _, ill := range []func(*steptest.Kube){
				func(k *steptest.Kube) { k.Unhealthy = []string{"etcd-" + second} },
				func(k *steptest.Kube) { k.Unhealthy, k.Learner = nil, second },
				func(k *steptest.Kube) { k.Learner, k.Alarm = "", "memberID:1 alarm:NOSPACE" },
			} {
				s.Kube.Change(ill)
				got := s.stops()
				err := s.Run(pipeline.RestartStore, nil)
				s.OnCommand = nil
				if err == nil || !strings.Contains(err.Error(), second) && !strings.Contains(err.Error(), "NOSPACE") || len(*got) > 0 {
					s.t.Errorf("stopped %q: %v", *got, err)
				}
			}
			s.Kube.Change(func(k *steptest.Kube) { k.Alarm = "" })
			got := s.stops()
			s.Must(pipeline.RestartStore, "restart of a store that is healthy again")
			s.OnCommand = nil
			if len(*got) != 3 {
				s.t.Errorf("stopped %q", *got)
			}
		})
	}
}

// TestRestartStopsWhereAMemberFails: one that does not come back ends the restart, and the
// members behind it are left alone. What went well is not done again by a run that goes on.
func TestRestartStopsWhereAMemberFails(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		got := s.stops()
		heard := s.OnCommand
		s.OnCommand = func(host, step string, c connector.Cmd, in []byte) {
			if heard(host, step, c, in); c.Verb == connector.VerbUnitRestart && host == "e2" {
				s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = []string{"etcd-e2"} })
			}
		}
		err := s.Run(pipeline.RestartStore, nil)
		s.OnCommand = nil
		if err == nil || !strings.Contains(err.Error(), "etcd.restart[e2] on e2") || strings.Join(*got, " ") != "etcd.service on e1 etcd.service on e2" {
			s.t.Errorf("stopped %q: %v", *got, err)
		}
		done := map[string]bool{}
		for _, e := range s.Events {
			done[engine.Key(e.Node, e.Host)] = e.Outcome == engine.Ran
		}
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = nil })
		got = s.stops()
		s.Passed = func(node, host string) bool { return done[engine.Key(node, host)] }
		s.Must(pipeline.RestartStore, "restart that goes on")
		s.OnCommand = nil
		if strings.Join(*got, " ") != "etcd.service on e2 etcd.service on e3" {
			s.t.Errorf("a run that goes on stopped %q", *got)
		}
		gates := 0
		for _, e := range s.Events {
			if e.Step == "gate.store" && e.Outcome == engine.Checked {
				gates++
			}
		}
		if gates != 4 {
			s.t.Errorf("%d gates were asked again", gates)
		}
	})
}

// TestRestartInBatches: workers go some at a time, masters one by one whatever is asked for.
func TestRestartInBatches(t *testing.T) {
	t.Parallel()
	s := newSite(t, "many")
	c := s.Cluster
	g, err := plan.Build(pipeline.RestartNodes(), plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version, Batch: plan.Batch{Percent: 50}})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, n := range g.Nodes {
		if n.Step.Meta().Name == "kubernetes.restart-kubelet" {
			sizes = append(sizes, len(n.Hosts))
		}
	}
	masters := len(c.Spec.RoleGroups.Names("master"))
	if len(sizes) != masters+2 || slices.Max(sizes[:masters]) != 1 || slices.Min(sizes[masters:]) < 2 {
		t.Errorf("at once %v, of which %d masters", sizes, masters)
	}
}

// TestRestartSaysWhatItWaitsFor: a gate tells what is missing while it waits.
func TestRestartSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	each(t, []string{"masters-stacked"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = []string{"kube-apiserver-m3"} })
		go func() {
			select {
			case <-time.After(time.Minute):
				s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = nil })
			case <-ctx.Done():
			}
		}()
		s.Must(pipeline.RestartControlPlane, "restart")
		if !slices.ContainsFunc(s.Events, func(e engine.Event) bool {
			return e.Outcome == engine.Waiting && e.Host == "m3" && strings.Contains(e.Reason, "the API server of m3 is not ready")
		}) {
			s.t.Error("nobody said what was waited for")
		}
	})
}

// members are the hosts of the store's members.
func (s *site) members() []string {
	if own := s.Cluster.Spec.RoleGroups.Names("etcd"); s.Cluster.Spec.Etcd.Type == "kubexm" {
		return own
	}
	return s.Cluster.Spec.RoleGroups.Names("master")
}
