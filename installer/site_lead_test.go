package installer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// away is what the cluster's record says of hosts that the last run went without.
func (s *site) away() string {
	data, _ := s.Kube.Object("v1", "ConfigMap", "kube-system", "kubexm")["data"].(map[string]any)
	text, _ := data["away"].(string)
	return text
}

// leads are the masters on which the last run spoke to the cluster, in turn.
func (s *site) leads() []string {
	var out []string
	for _, e := range s.Events {
		if e.PlanHost == manifest.LeadName {
			out = append(out, e.Host)
		}
	}
	return slices.Compact(out)
}

// relabelled is the config with a label on a worker, which the cluster has to be told.
func (s *site) relabelled(t *testing.T, config, worker string) string {
	t.Helper()
	return with(t, config, "name: "+worker+", ", "name: "+worker+", labels: {disk: ssd}, ")
}

func (s *site) label(node string) any {
	meta, _ := s.Kube.Object("v1", "Node", "", node)["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels["disk"]
}

// TestInstallGoesOnWithoutAHost: a worker, a further master, the first one, and a member
// of etcd without power end an installation, and --skip-host goes on without. What is
// undone is on record, and the next run that reaches the host does it. A short run takes
// every third.
func TestInstallGoesOnWithoutAHost(t *testing.T) {
	t.Parallel()
	for i, e := range []struct{ cluster, host, labelled string }{
		{"masters-stacked", "m1", "w1"}, {"site", "w1", "w2"}, {"masters-stacked", "m2", "w1"}, {"masters", "m1", "w1"}, {"etcd-hosts", "e2", "w1"}, {"endpoint-existing", "m1", "w1"},
	} {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(e.cluster+"/"+e.host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configOf(t, e.cluster)
				s := siteOf(t, config, e.cluster)
				first := s.State(true)
				s.Must(pipeline.Create, "create")
				s.PowerOff(e.host)
				before := s.ofHost(e.host)
				s.Edit(s.relabelled(t, config, e.labelled))
				if err := s.Run(pipeline.Create, nil); err == nil {
					t.Fatal("an installation went by a host that does not answer, and nobody asked it to")
				}
				s.Skip = []string{e.host}
				s.Must(pipeline.Create, "create without a host")
				if s.label(e.labelled) != "ssd" || s.away() != e.host {
					t.Errorf("the label is %v, the record says that %q was passed over", s.label(e.labelled), s.away())
				}
				for _, x := range s.Events {
					if x.Host == e.host {
						t.Errorf("%s ran on the host that is away", x.Step)
					}
				}
				for _, l := range s.leads() {
					if l == e.host {
						t.Errorf("the lead is %s", l)
					}
				}
				objects := func(l string) bool { return strings.Contains(l, s.Cluster.Spec.Etcd.DataDir) } // they lie on a host that is simulated
				if was, is := slices.DeleteFunc(before, objects), slices.DeleteFunc(s.ofHost(e.host), objects); !slices.Equal(was, is) {
					t.Errorf("the host changed:\n%v\n%v", was, is)
				}
				s.Must(pipeline.Create, "create without a host again")
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("ran %q", ran)
				}
				s.Skip = nil
				s.PowerOn(e.host)
				s.Must(pipeline.Create, "create with the host")
				if s.away() != "" {
					t.Errorf("the record still says that %q was passed over", s.away())
				}
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("ran %q", ran)
				}
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion gives back what was there", first, s.State(true))
			})
		})
	}
}

// TestWhoIsNeeded: an installation does not go without hosts that the others need.
func TestWhoIsNeeded(t *testing.T) {
	t.Parallel()
	refused := func(s *site, says string, away ...string) {
		s.t.Helper()
		s.Skip = away
		before := s.State(true)
		err := s.Run(pipeline.Create, nil)
		var needed *state.SkipError
		if !errors.As(err, &needed) || !strings.Contains(err.Error(), says) || needed.Advice() == "" {
			s.t.Errorf("without %q: %v, want %q", away, err, says)
		}
		s.Same("refused, and nothing changed", before, s.State(true))
		s.Skip = nil
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "etcd-hosts")
		refused(s, "the installation of the cluster is not finished", "w1")
		s.Must(pipeline.Create, "create")
		refused(s, "host r1 runs the registry", "r1")
		refused(s, "without e1, e2 etcd has no quorum", "e1", "e2")
		s.Skip = []string{"w9"}
		var unknown *state.UnknownHostError
		if err := s.Run(pipeline.Create, nil); !errors.As(err, &unknown) {
			t.Errorf("%v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		s.Must(pipeline.Create, "create")
		refused(s, "etcd has no quorum", "m1", "m2")
		refused(s, "no master would be left", "m1", "m2", "m3")
	})
}

// silencing is a step after which the API server of a master does not answer any more.
type silencing struct {
	steps.Step
	s    *site
	host string
}

func (x silencing) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	v, err := x.Step.Precheck(ctx, h)
	if v == steps.Done {
		x.s.Kube.Silence(x.host, true)
	}
	return v, err
}

// TestTheLeadChanges: what comes after a lead that answers no more goes through another
// master; the plan's text is the same whoever is the lead.
func TestTheLeadChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		text := s.Graph(pipeline.Create, nil).String()
		s.Must(pipeline.Create, "create")
		if got := s.leads(); !slices.Equal(got, []string{"m1"}) {
			t.Errorf("while all answer the leads are %q", got)
		}
		s.Must(pipeline.Delete, "delete")
		if err := s.Run(pipeline.Create, func(n *plan.Node) {
			// Nothing runs beside this step, which would fail with its lead.
			if n.Step.Meta().Name == "kubernetes.record-applied" {
				n.Step = silencing{n.Step, s, "m1"}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got := s.leads(); !slices.Equal(got, []string{"m1", "m2"}) {
			t.Errorf("the leads are %q", got)
		}
		if got := s.Graph(pipeline.Create, nil).String(); got != text || strings.Contains(text, "wait-ready  on m1") || !strings.Contains(text, "wait-ready  on lead") {
			t.Error("the plan tells of the lead by another word")
		}
	})
}

// TestADeletionFindsAWayIn: pods are moved off the nodes through a master that answers.
func TestADeletionFindsAWayIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		s.Must(pipeline.Create, "create")
		s.PowerOff("m1")
		s.Skip = []string{"m1"}
		drained := ""
		s.Must(pipeline.Delete, "delete")
		for _, e := range s.Events {
			if e.Step == "kubernetes.drain-nodes" {
				drained = e.Host
			}
		}
		if drained != "m2" {
			t.Errorf("drained through %q", drained)
		}
	})
}

// TestWayIn: the first master that serves, for as long as it does.
func TestWayIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		masters := s.Cluster.HostsWith(manifest.RoleMaster)
		lead := func(w *installer.LeadSelector, want, when string) {
			t.Helper()
			if got, err := w.Lead(t.Context()); err != nil || got.Name != want {
				t.Errorf("%s: %s, %v; want %s", when, got.Name, err, want)
			}
		}
		w := installer.NewLeadSelector(masters, s.Reached())
		lead(w, "m1", "before there is a cluster")
		s.Must(pipeline.Create, "create")
		w = installer.NewLeadSelector(masters, s.Reached())
		lead(w, "m1", "all serve")
		s.Kube.Silence("m1", true)
		lead(w, "m2", "the first is silent")
		s.Kube.Silence("m1", false)
		lead(w, "m2", "the first is back, and the second stays")
		s.Kube.Silence("m2", true)
		s.PowerOff("m1")
		lead(w, "m3", "two are out")
		s.Kube.Silence("m3", true)
		lead(w, "m3", "all are out")
		if _, err := installer.NewLeadSelector(nil, s.Reached("m2")).Lead(t.Context()); err == nil {
			t.Error("no master, and no error")
		}
	})
}

// TestAHostThatIsLeftAndAway: what an earlier deletion left on a host waits for a run
// that reaches it.
func TestAHostThatIsLeftAndAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := configOf(t, "site")
		s := siteOf(t, config, "site")
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		s.PowerOff("w2")
		s.Skip = []string{"w2"}
		s.Must(pipeline.Delete, "delete without w2")
		s.Skip = nil
		s.Edit(with(t, config, "    - {name: w2, address: 192.0.2.22}\n", "", "[w1, w2]", "[w1]"))
		s.Must(pipeline.Create, "create without w2")
		s.Edit(config)
		s.Skip = []string{"w2"}
		s.Must(pipeline.Create, "create while w2 is still away")
		s.Skip = nil
		s.PowerOn("w2")
		s.Must(pipeline.Create, "create with w2")
		if s.Kube.Object("v1", "Node", "", "w2") == nil {
			t.Error("w2 has not joined")
		}
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}
