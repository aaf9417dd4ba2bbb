package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

func fails(name, host string) *step {
	x := s(name)
	x.run = func(_ context.Context, h *steps.Host) error {
		if h.Name == host {
			return errors.New("out of luck")
		}
		return nil
	}
	return x
}

// eventsOf gives a recorder's events of one host, in order.
func (r *recorder) eventsOf(host string) []string {
	var out []string
	for _, e := range r.events {
		if step, outcome, _ := strings.Cut(e, "@"+host+" "); strings.Contains(e, "@"+host+" ") {
			out = append(out, step+" "+outcome)
		}
	}
	return out
}

// TestGuarded: a host on which a guarded step fails goes its way back, once the step is
// undone. Others keep what they have, and so do steps outside.
func TestGuarded(t *testing.T) {
	relink, start, last := s("relink"), s("start"), s("switch")
	done := make(chan struct{}) // b fails when a has come as far
	last.run = func(_ context.Context, h *steps.Host) error {
		if h.Name == "a" {
			close(done)
			return nil
		}
		<-done
		return errors.New("out of luck")
	}
	g := graph(t, func() plan.Fragment {
		return plan.Seq(plan.On(hosts("a", "b"), s("before")), plan.Guarded(
			plan.On(hosts("a", "b"), s("drain"), s("looks"), last),
			func(h manifest.Host) plan.Fragment { return plan.On([]manifest.Host{h}, relink, start) },
		))
	})
	g.Nodes[2].Step.(*step).m.ReadOnly = true
	e, r := engine(t)
	if err := e.Run(t.Context(), g); err == nil || !strings.Contains(err.Error(), "switch on b: out of luck") {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{
		"a": {"before ran", "drain ran", "looks checked", "switch ran"},
		"b": {"before ran", "drain ran", "looks checked", "switch failed", "switch rolled back", "drain rolled back", "relink rolled back", "start rolled back"},
	} {
		if got := r.eventsOf(host); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	if _, ok := relink.did.Load("a"); ok {
		t.Error("a went back too")
	}
}

// TestGuardedGate: a wait that fails starts the way back, too; where all is well, or in
// a dry run, nobody goes back.
func TestGuardedGate(t *testing.T) {
	for _, c := range []struct {
		bad  string
		dry  bool
		want bool
	}{{"a", false, true}, {"", false, false}, {"a", true, false}} {
		relink := s("relink")
		gate := fails("gate", c.bad)
		gate.m.ReadOnly = true
		g := graph(t, func() plan.Fragment {
			return plan.Guarded(plan.On(hosts("a"), s("switch"), gate), func(h manifest.Host) plan.Fragment { return plan.On([]manifest.Host{h}, relink) })
		})
		e, _ := engine(t)
		e.DryRun = c.dry
		if err := e.Run(t.Context(), g); (err != nil) != c.want {
			t.Fatal(err)
		}
		if _, back := relink.did.Load("a"); back != c.want {
			t.Errorf("%+v: went back: %t", c, back)
		}
	}
}

// TestGuardsNest: the inner way back comes first, and ends all where it fails.
func TestGuardsNest(t *testing.T) {
	for bad, want := range map[string][]string{
		"":      {"switch failed", "switch rolled back", "inner rolled back", "outer rolled back"},
		"inner": {"switch failed", "switch rolled back", "inner rolled back"},
	} {
		back := func(name string) func(manifest.Host) plan.Fragment {
			return func(h manifest.Host) plan.Fragment {
				x := s(name)
				if name == bad {
					x = fails(name, "a")
				}
				return plan.On([]manifest.Host{h}, x)
			}
		}
		g := graph(t, func() plan.Fragment {
			return plan.Guarded(plan.Guarded(plan.On(hosts("a"), fails("switch", "a")), back("inner")), back("outer"))
		})
		e, r := engine(t)
		err := e.Run(t.Context(), g)
		if got := r.eventsOf("a"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if said := strings.Contains(err.Error(), "m/t/inner[back/a] on a: out of luck"); said != (bad == "inner") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestGuardedResumed: what a resumed run passed over is said to be undone, too: the next
// one must not pass over it again.
func TestGuardedResumed(t *testing.T) {
	g := graph(t, func() plan.Fragment {
		return plan.Guarded(plan.On(hosts("a"), s("drain"), fails("switch", "a")), func(h manifest.Host) plan.Fragment { return plan.On([]manifest.Host{h}, s("relink")) })
	})
	e, r := engine(t)
	e.Passed = map[string]bool{Key("m/t/drain", "a"): true}
	if err := e.Run(t.Context(), g); err == nil {
		t.Fatal("it did not fail")
	}
	if want := []string{"drain resumed", "switch failed", "switch rolled back", "drain rolled back", "relink rolled back"}; !slices.Equal(r.eventsOf("a"), want) {
		t.Errorf("%q", r.eventsOf("a"))
	}
}

// TestGuardedForIncomplete: a host whose part was begun goes back when another one fails, or the
// run is stopped, before that part is complete. One whose part is complete or was not begun
// stays as it is.
func TestGuardedForIncomplete(t *testing.T) { synctest.Test(t, guardedForIncomplete) }

func guardedForIncomplete(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		uncordon, stop, drained := s("uncordon"), make(chan struct{}), make(chan struct{})
		g := graph(t, func() plan.Fragment {
			visit := func(h manifest.Host) plan.Fragment {
				lead, work := hosts("m"), s("switch")
				switch h.Name {
				case "w2":
					work.run = func(context.Context, *steps.Host) error { close(drained); <-stop; time.Sleep(time.Second); return nil }
				case "w3":
					work.run = func(context.Context, *steps.Host) error {
						<-drained
						close(stop)
						if stopped {
							time.Sleep(time.Second) // the run ends meanwhile
							return nil
						}
						return errors.New("out of luck")
					}
				}
				return plan.GuardedFor(h, plan.Seq(plan.On(lead, s("drain")), plan.On([]manifest.Host{h}, work), plan.On(lead, s("return"))), plan.On([]manifest.Host{h}, uncordon))
			}
			return plan.Seq(plan.Roll(hosts("w1"), visit), plan.Each(hosts("w2", "w3"), visit), plan.Roll(hosts("w4"), visit))
		})
		e, r := engine(t)
		if stopped {
			e.Stop = stop
		}
		if err := e.Run(t.Context(), g); err == nil || errors.Is(err, ErrStopped) != stopped {
			t.Fatal(err)
		}
		for _, host := range []string{"w1", "w2", "w3", "w4"} {
			_, back := uncordon.did.Load(host)
			if want := host == "w2" || host == "w3"; back != want {
				t.Errorf("stopped %t: %s went back: %t, want %t; %q", stopped, host, back, want, r.events)
			}
		}
	}
}

// asked notes from which sets files are opened.
type asked struct {
	steps.Artifacts
	sets []string
}

func (a *asked) Lookup(n manifest.Need, _ manifest.Platform) (manifest.Blob, error) {
	a.sets = append(a.sets, n.Set)
	return manifest.Blob{}, nil
}

// TestInSet: a step opens the artifacts of its node's set, and so does its way back.
func TestInSet(t *testing.T) {
	need := manifest.Need{Kind: manifest.Binary, Name: "kubelet"}
	opens := func(name string, err error) *step {
		x := s(name)
		x.m.Needs = []manifest.Need{need}
		x.run = func(_ context.Context, h *steps.Host) error {
			_, found := h.Lookup(need)
			return errors.Join(found, err)
		}
		return x
	}
	g := graph(t, func() plan.Fragment {
		return plan.Seq(plan.On(hosts("a"), opens("one", nil)), plan.InSet("v2", plan.Guarded(
			plan.On(hosts("a"), opens("two", nil), opens("three", errors.New("out of luck"))),
			func(h manifest.Host) plan.Fragment {
				return plan.InSet("v1", plan.On([]manifest.Host{h}, opens("back", nil)))
			},
		)))
	})
	e, _ := engine(t)
	a := &asked{}
	e.Host = func(h manifest.Host) *steps.Host { return &steps.Host{Host: h, Artifacts: a} }
	if err := e.Run(t.Context(), g); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Fatal(err)
	}
	if want := []string{"", "v2", "v2", "v1"}; !slices.Equal(a.sets, want) {
		t.Errorf("opened from sets %q, want %q", a.sets, want)
	}
}

// TestGuardedFor: of a part that is for one host and has steps on others, such as a drain
// that is asked for on a master, that one host goes back, wherever a step failed.
func TestGuardedFor(t *testing.T) {
	relink, uncordon := s("relink"), s("uncordon")
	g := graph(t, func() plan.Fragment {
		return plan.Roll(hosts("w1", "w2"), func(h manifest.Host) plan.Fragment {
			here, lead := []manifest.Host{h}, hosts("m")
			gate := s("gate")
			if h.Name == "w2" {
				gate = fails("gate", "m")
			}
			return plan.GuardedFor(h, plan.Seq(plan.On(lead, s("drain")), plan.On(here, s("switch")), plan.On(lead, gate)),
				plan.Seq(plan.On(here, relink), plan.On(lead, uncordon)))
		})
	})
	e, r := engine(t)
	if err := e.Run(t.Context(), g); err == nil || !strings.Contains(err.Error(), "gate[w2] on m: out of luck") {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{
		"m":  {"drain ran", "gate ran", "drain ran", "gate failed", "gate rolled back", "drain rolled back", "uncordon rolled back"},
		"w1": {"switch ran"},
		"w2": {"switch ran", "switch rolled back", "relink rolled back"},
	} {
		if got := r.eventsOf(host); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	if _, ok := relink.did.Load("m"); ok {
		t.Error("the master was relinked")
	}
}
