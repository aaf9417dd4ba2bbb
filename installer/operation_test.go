package installer_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// open gives the operation that is open, as the masters and this machine say it.
func (s *site) open(silent ...string) *cluster.Operation {
	s.t.Helper()
	o, err := state.Operation(s.t.Context(), s.Cluster, s.Workdir, s.Hosts(silent...))
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// history gives the outcomes of all operations, the oldest first.
func (s *site) history(silent ...string) string {
	s.t.Helper()
	all, err := state.History(s.t.Context(), s.Cluster, s.Workdir, s.Hosts(silent...))
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Kind+" "+e.Outcome)
	}
	return strings.Join(out, ", ")
}

// failsAt has a step of a plan fail once it has run.
func failsAt(step string) func(*plan.Node) {
	return func(n *plan.Node) {
		if n.Step.Meta().Name == step {
			n.Step = failing{n.Step, true}
		}
	}
}

// files are the files of open operations on the site's hosts.
func (s *site) files() []string {
	var out []string
	for _, line := range s.State(true) {
		if strings.Contains(line, "/operation.json") {
			out = append(out, line)
		}
	}
	return out
}

// TestAnOperationIsOnRecord: from the first change to the end, in files while there is no
// cluster yet, and again when it is broken off and goes on.
func TestAnOperationIsOnRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		first := s.State(true)
		if o := s.open(); o != nil {
			t.Errorf("before: %+v", o)
		}
		if err := s.Run(pipeline.Create, failsAt("kubeadm.join-worker")); err == nil {
			t.Fatal("the run did not fail")
		}
		was := s.open("m1")
		if was == nil || was.Kind != "create" || was.State != cluster.OperationFailed || was.From != "" || was.To != s.Cluster.Spec.Kubernetes.Version || was.Who != "tester@site" || was.Plan == "" || was.Config == "" {
			t.Fatalf("after a failure: %+v", was)
		}
		if n := len(s.files()); n != 3 {
			t.Errorf("%d masters have it in a file: %q", n, s.files())
		}
		if here, err := cluster.ReadWorkdirOperation(s.Workdir); err != nil || here == nil || *here != *was {
			t.Errorf("here: %+v, %v", here, err)
		}
		time.Sleep(time.Hour)
		s.Must(pipeline.Create, "the same command again")
		if o := s.open(); o != nil || len(s.files()) > 0 {
			t.Errorf("at the end: %+v, %q", o, s.files())
		}
		all, err := cluster.ReadWorkdirHistory(s.Workdir)
		if err != nil || len(all) != 2 || all[0].ID != was.ID || all[1].ID != was.ID || all[0].Outcome != "failed" || all[1].Outcome != "done" || !all[1].Since.Equal(was.Since) {
			t.Errorf("history: %+v, %v", all, err)
		}
		// A run without work is no operation.
		s.Must(pipeline.Create, "nothing to do")
		if got := s.history(); got != "create failed, create done" {
			t.Errorf("history: %s", got)
		}
		// Of a cluster that exists its record tells what is open, and that nothing is.
		s.Sims["w1"].RemoveAll("/etc/sysctl.d/99-kubexm-cri.conf")
		if err := s.Run(pipeline.Create, failsAt("node.configure-kernel")); err == nil {
			t.Fatal("the run did not fail")
		}
		again := s.open("m1")
		if again == nil || again.ID == was.ID || again.From != s.Cluster.Spec.Kubernetes.Version || again.State != cluster.OperationFailed {
			t.Fatalf("a repair that failed: %+v", again)
		}
		s.noAPI()
		if o := s.open("m1"); o == nil || *o != *again {
			t.Errorf("without an API server: %+v", o)
		}
		s.Must(pipeline.Reset, "reset")
		s.Same("a deletion leaves no operation", first, s.State(true))
		if o := s.open(); o != nil {
			t.Errorf("after the deletion: %+v", o)
		}
		if got := s.history(); got != "create failed, create done, create failed, reset done" {
			t.Errorf("history: %s", got)
		}
	})
}

// TestAnOperationThatWasCutOffAtItsEnd: the cluster's record has closed it, and the process ended
// before it removed the files and added it to the history. The same command does both.
func TestAnOperationThatWasCutOffAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		done, err := cluster.ReadWorkdirHistory(s.Workdir)
		if err != nil || len(done) != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		is := done[0].Operation
		is.State = cluster.OperationOpen
		for _, noted := range []bool{false, true} { // in the history
			if err := cluster.WriteOperation(t.Context(), s.Hosts()(s.Cluster.HostsWith(manifest.RoleMaster)[0]), &is); err != nil {
				t.Fatal(err)
			}
			if !noted {
				if err := os.Remove(cluster.HistoryPath(s.Workdir)); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(s.files()); n != 1 {
				t.Fatalf("%q", s.files())
			}
			time.Sleep(time.Hour)
			s.Must(pipeline.Create, "the same command again")
			if len(s.files()) > 0 {
				t.Errorf("left: %q", s.files())
			}
			if all, err := cluster.ReadWorkdirHistory(s.Workdir); err != nil || len(all) != 1 || all[0].ID != is.ID || all[0].Outcome != "done" {
				t.Errorf("history: %+v, %v", all, err)
			}
			if all, err := cluster.FetchHistory(t.Context(), s.Hosts()(s.Cluster.HostsWith(manifest.RoleMaster)[0])); err != nil || len(all) != 1 {
				t.Errorf("history in the cluster: %+v, %v", all, err)
			}
		}
	})
}

// TestTheClusterKnowsWhatOtherMachinesDid: its history has their operations, and another
// workdir shows them beside its own.
func TestTheClusterKnowsWhatOtherMachinesDid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		s.Workdir = t.TempDir()
		if got := s.history("m1"); got != "create done" {
			t.Errorf("another machine knows %q", got)
		}
		time.Sleep(time.Hour)
		s.Sims["w1"].RemoveAll("/etc/sysctl.d/99-kubexm-cri.conf")
		s.Must(pipeline.Create, "repair")
		if got := s.history("m1"); got != "create done, create done" {
			t.Errorf("then: %q", got)
		}
		all, err := cluster.FetchHistory(t.Context(), s.Hosts()(s.Cluster.Spec.Hosts[1]))
		if err != nil || len(all) != 2 {
			t.Errorf("in the cluster: %+v, %v", all, err)
		}
	})
}

// TestAnotherKindOfOperationIsRefused: while one is open; the deletion of the cluster is
// not, and neither is anything once it is abandoned.
func TestAnotherKindOfOperationIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		s.Sims["w1"].RemoveAll("/etc/sysctl.d/99-kubexm-cri.conf")
		of := s.Hosts()
		upgrade := &cluster.Operation{ID: "op-7", Kind: "upgrade", From: "v1.32.2", To: "v1.33.1", Who: "anna@wd2", Since: time.Now().UTC(), State: cluster.OperationOpen}
		for _, m := range s.Cluster.HostsWith("master") {
			if err := cluster.WriteOperation(t.Context(), of(m), upgrade); err != nil {
				t.Fatal(err)
			}
		}
		if err := cluster.SetOperation(t.Context(), of(s.Cluster.HostsWith("master")[1]), upgrade); err != nil {
			t.Fatal(err)
		}
		before := s.State(true)
		err := s.Run(pipeline.Create, nil)
		var other *installer.OperationError
		if !errors.As(err, &other) || len(s.ran()) > 0 || !strings.Contains(err.Error(), "operation op-7 (upgrade) is open; anna@wd2 started it at ") || !strings.Contains(other.Advice(), "kubexm operation abandon") {
			t.Errorf("%v, ran %q", err, s.ran())
		}
		s.Same("what is refused changes nothing", before, s.State(true))
		abandoned, err := installer.Abandon(t.Context(), s.Cluster, s.Workdir, of)
		if err != nil || abandoned == nil || abandoned.ID != "op-7" {
			t.Fatalf("%+v, %v", abandoned, err)
		}
		if o := s.open(); o != nil || len(s.files()) > 0 {
			t.Errorf("abandoned, and open: %+v, %q", o, s.files())
		}
		s.Must(pipeline.Create, "after it was abandoned")
		if got := s.history(); got != "create done, upgrade abandoned, create done" {
			t.Errorf("history: %s", got)
		}
		if err := cluster.SetOperation(t.Context(), of(s.Cluster.HostsWith("master")[0]), upgrade); err != nil {
			t.Fatal(err)
		}
		s.Must(pipeline.Delete, "a deletion ends what is open")
	})
}

// TestARestartIsAnOperation: it is on record from its first restart to its end, holds the
// place of others meanwhile and waits for theirs, and leaves what was applied as it is.
func TestARestartIsAnOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		exists := func() *manifest.Existing {
			e, err := state.Exists(t.Context(), s.Cluster, s.Workdir, s.Hosts())
			if err != nil || e == nil {
				t.Fatalf("%v, %v", e, err)
			}
			return e
		}
		applied := exists()
		set := s.Cluster.Spec.Kubernetes.Version
		if err := s.Run(pipeline.RestartNodes, failsAt("kubernetes.restart-kubelet")); err == nil {
			t.Fatal("the run did not fail")
		}
		was := s.open("m1")
		if was == nil || was.Kind != "restart-nodes" || was.State != cluster.OperationFailed || was.From != set || was.To != set || was.Who != "tester@site" {
			t.Fatalf("after a failure: %+v", was)
		}
		for _, p := range []pipe{pipeline.Create, pipeline.RestartAll} {
			before := s.State(true)
			err := s.Run(p, nil)
			var other *installer.OperationError
			if !errors.As(err, &other) || other.ID != was.ID || len(s.ran()) > 0 {
				t.Errorf("%s: %v, ran %q", p().Name, err, s.ran())
			}
			s.Same("what is refused changes nothing", before, s.State(true))
		}
		time.Sleep(time.Hour)
		s.Must(pipeline.RestartNodes, "the same command again")
		all, err := cluster.ReadWorkdirHistory(s.Workdir)
		if err != nil || len(all) != 3 || all[1].ID != was.ID || all[2].ID != was.ID || all[2].Outcome != "done" || all[2].To != set {
			t.Errorf("history: %+v, %v", all, err)
		}
		if err := s.Run(pipeline.RestartNodes, failsAt("kubernetes.restart-kubelet")); err == nil {
			t.Fatal("the run did not fail")
		}
		if abandoned, err := installer.Abandon(t.Context(), s.Cluster, s.Workdir, s.Hosts()); err != nil || abandoned == nil || abandoned.Kind != "restart-nodes" {
			t.Errorf("%+v, %v", abandoned, err)
		}
		if o := s.open(); o != nil || len(s.files()) > 0 {
			t.Errorf("abandoned, and open: %+v, %q", o, s.files())
		}
		if got := s.history(); got != "create done, restart-nodes failed, restart-nodes done, restart-nodes failed, restart-nodes abandoned" {
			t.Errorf("history: %s", got)
		}
		if after := exists(); !reflect.DeepEqual(applied, after) {
			t.Errorf("a restart changed the record of what was applied: %+v, before %+v", after, applied)
		}
	})
}

// TestHostsAloneAreNoOperation: what makes hosts ready is about no cluster.
func TestHostsAloneAreNoOperation(t *testing.T) {
	t.Parallel()
	for _, p := range pipeline.All() {
		if got, want := p.Operates(), p.Name != "preflight" && p.Name != "prepare" && p.Name != "restore"; got != want {
			t.Errorf("%s is an operation on a cluster: %t, want %t", p.Name, got, want)
		}
	}
}

// TestARefusedRunLeavesNoTrace: where an operation is open, a run that ends before its first
// change adds nothing to what is on record of it.
func TestARefusedRunLeavesNoTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		if err := s.Run(pipeline.Create, failsAt("kubeadm.join-worker")); err == nil {
			t.Fatal("the run did not fail")
		}
		before, history := s.State(true), s.history()
		if err := s.Run(pipeline.Create, failsAt("preflight.clock")); err == nil {
			t.Fatal("the run was not refused")
		}
		s.Same("refused before the first change", before, s.State(true))
		if got := s.history(); got != history {
			t.Errorf("the history was %q and is %q", history, got)
		}
	})
}
