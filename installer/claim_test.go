package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestOnlyOneRunAtATime: two machines with folders of their own work on one
// cluster. The second is refused at once, by the host's word, and may when the
// first has ended.
func TestOnlyOneRunAtATime(t *testing.T) {
	t.Parallel()
	// In a bubble only waiting takes time, however busy the machine is.
	synctest.Test(t, onlyOneRunAtATime)
}

func onlyOneRunAtATime(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, steptest.Small)}
	sim := kase.Sim(t)
	session := func(act func(context.Context) error) (*Session, *plan.Graph) {
		step := &op.Do{M: steps.Meta{Name: "x.act", Always: true}, Act: func(ctx context.Context, _ *steps.Host) error { return act(ctx) }}
		g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
			return plan.On(s.Hosts(), step)
		}})}}}, plan.Scope{Want: kase.Cluster})
		if err != nil {
			t.Fatal(err)
		}
		return sessionOf(t, kase.Cluster, kase.NewHost(t, sim, step)), g
	}
	at, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	first, g := session(func(context.Context) error { close(at); <-goOn; return nil })
	go func() {
		_, err := first.Run(t.Context(), g, RunOptions{Parallel: 1})
		ended <- err
	}()
	<-at
	ran := false
	second, h := session(func(context.Context) error { ran = true; return nil })
	began := time.Now()
	_, err := second.Run(t.Context(), h, RunOptions{Parallel: 1})
	var busy *BusyError
	if !errors.As(err, &busy) || busy.At != "node1" || !strings.Contains(err.Error(), "since 20") || ran {
		t.Errorf("the second run: %v, ran %v", err, ran)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it was refused after %s", took)
	}
	third, _ := session(nil)
	if err := third.checkAlone(t.Context(), third.hosts["node1"].Runner); !errors.As(err, &busy) || busy.At != "node1" {
		t.Errorf("before anything else is asked: %v", err)
	}
	if _, err := second.Run(t.Context(), h, RunOptions{Parallel: 1, DryRun: true}); err != nil {
		t.Errorf("a dry run changes nothing, and was refused: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := third.checkAlone(t.Context(), third.hosts["node1"].Runner); err != nil {
		t.Errorf("alone after the first has ended: %v", err)
	}
	if _, err := second.Run(t.Context(), h, RunOptions{Parallel: 1}); err != nil || !ran {
		t.Errorf("after the first has ended: %v, ran %v", err, ran)
	}
}

// siteOf is a session of a cluster with hosts that are machines, by their names in
// that cluster's config, and a plan with a step on each.
func siteOf(t *testing.T, cluster string, hosts []string, machines []*conntest.Sim) (*Session, *plan.Graph) {
	t.Helper()
	var lines string
	for i, name := range hosts {
		lines += fmt.Sprintf("    - {name: %s, address: 198.18.%d.%d}\n", name, len(cluster), i+1) // a machine has another address in each
	}
	c := steptest.Cluster(t, strings.NewReplacer("name: demo", "name: "+cluster, "    - {name: node1, address: 192.0.2.11}\n", lines, "[node1]", "["+hosts[0]+"]").Replace(steptest.Small))
	step := &op.Do{M: steps.Meta{Name: "x.act", Always: true}, Act: func(context.Context, *steps.Host) error { return nil }}
	g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), step)
	}})}}}, plan.Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, c, nil)
	s.Parallel = 4
	delete(s.hosts, "node1")
	for i, h := range c.Spec.Hosts {
		s.hosts[h.Name] = steptest.Case{Cluster: c, Host: h}.NewHost(t, machines[i], step)
		if s.hosts[h.Name].Facts, err = s.hosts[h.Name].Runner.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s, g
}

// machines are hosts with a machine id each.
func machines(t *testing.T, n int) []*conntest.Sim {
	var out []*conntest.Sim
	for i := range n {
		s := conntest.New(t)
		s.SetMachine(func(m *conntest.Machine) { m.MachineID = fmt.Sprintf("%032d", i) })
		out = append(out, s)
	}
	return out
}

// TestRunsWithHostsInCommon: clusters of other names and with other first masters,
// from machines that know nothing of each other.
func TestRunsWithHostsInCommon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := machines(t, 4)
		one, g := siteOf(t, "one", []string{"m1", "w1", "w2"}, []*conntest.Sim{m[0], m[2], m[3]})
		two, h := siteOf(t, "two", []string{"n1", "n2", "n3"}, []*conntest.Sim{m[1], m[3], m[2]})
		_, release, err := one.claim(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _, err = two.claim(t.Context(), h)
		var busy *BusyError
		if !errors.As(err, &busy) || !busy.Other || busy.At != "n3" || !strings.Contains(err.Error(), "another run works on host n3: process ") || !strings.HasSuffix(err.Error(), ", for cluster one") {
			t.Errorf("while the other works: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it was refused after %s", took)
		}
		release()
		claimed, release, err := two.claim(t.Context(), h)
		if err != nil || claimed.Err() != nil {
			t.Fatalf("after its end: %v, %v", err, claimed)
		}
		release()

		// Of two that begin at once one gets all hosts, whatever comes first.
		for i := range 50 {
			var releases [2]func()
			var errs [2]error
			var wg sync.WaitGroup
			for j, s := range []struct {
				*Session
				g *plan.Graph
			}{{one, g}, {two, h}} {
				wg.Go(func() { _, releases[j], errs[j] = s.claim(t.Context(), s.g) })
			}
			wg.Wait()
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("%d: %v, and %v", i, errs[0], errs[1])
			}
			for j, err := range errs {
				if err == nil {
					releases[j]()
				} else if !errors.As(err, &busy) {
					t.Errorf("%d: %v", i, err)
				}
			}
		}
	})
}

// cutter is a wire whose commands break when it is cut.
type cutter struct {
	connector.Conn
	cut chan struct{}
}

func (c *cutter) Exec(ctx context.Context, cmd connector.Cmd) (connector.Result, error) {
	ctx, broken := context.WithCancel(ctx)
	defer broken()
	go func() {
		select {
		case <-c.cut:
			broken()
		case <-ctx.Done():
		}
	}()
	return c.Conn.Exec(ctx, cmd)
}

// TestALeaseThatIsTakenEndsTheRun, on whichever host; one that is only lost does not.
func TestALeaseThatIsTakenEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := machines(t, 3)
			s, g := siteOf(t, "one", []string{"m1", "w1", "w2"}, m)
			cut := make(chan struct{}, 1)
			s.hosts["w2"].Runner = runner.New(&cutter{m[2], cut}, runner.Options{})
			claimed, release, err := s.claim(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			cut <- struct{}{}
			synctest.Wait()
			if taken { // before the first has it again
				other, _ := siteOf(t, "two", []string{"n1"}, m[2:])
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go func() { _ = other.hosts["n1"].Hold(ctx, other.lease(), func() {}) }()
			}
			select {
			case <-claimed.Done():
			case <-time.After(time.Minute):
			}
			var busy *BusyError
			if errors.As(context.Cause(claimed), &busy) != taken || taken && busy.At != "w2" {
				t.Errorf("taken %t: %v", taken, context.Cause(claimed))
			}
		})
	}
}
