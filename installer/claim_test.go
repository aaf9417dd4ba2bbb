package installer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestOnlyOneRunAtATime: two machines with folders of their own work on one
// cluster. The second is refused at once, by the host's word, and may when the
// first has ended.
func TestOnlyOneRunAtATime(t *testing.T) {
	// In a bubble only waiting takes time, however busy the machine is.
	synctest.Test(t, onlyOneRunAtATime)
}

func onlyOneRunAtATime(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, steptest.Small)}
	sim := kase.Sim(t)
	session := func(act func(context.Context) error) (*Session, *plan.Graph) {
		step := &op.Do{M: steps.Meta{Name: "x.act", Always: true}, Act: func(ctx context.Context, _ *steps.Host) error { return act(ctx) }}
		g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Tasks: []plan.Task{{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
			return plan.On(s.Hosts(), step)
		}}}}}}, plan.Scope{Cluster: kase.Cluster})
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
	if err := third.alone(t.Context(), third.hosts["node1"].Runner); !errors.As(err, &busy) || busy.At != "node1" {
		t.Errorf("before anything else is asked: %v", err)
	}
	if _, err := second.Run(t.Context(), h, RunOptions{Parallel: 1, DryRun: true}); err != nil {
		t.Errorf("a dry run changes nothing, and was refused: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := third.alone(t.Context(), third.hosts["node1"].Runner); err != nil {
		t.Errorf("alone after the first has ended: %v", err)
	}
	if _, err := second.Run(t.Context(), h, RunOptions{Parallel: 1}); err != nil || !ran {
		t.Errorf("after the first has ended: %v, ran %v", err, ran)
	}
}
