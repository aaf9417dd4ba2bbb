package installer_test

import (
	"errors"
	"fmt"
	"os"
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
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// asks asks the cluster as commands do that change nothing.
func asks(what func(*steps.Host) error) func(*site) error {
	return func(s *site) error {
		of := s.Reached("m2", "m3")
		m, err := installer.NewLeadSelector(s.Cluster.HostsWith(manifest.RoleMaster), of).Lead(s.t.Context())
		if err != nil {
			return err
		}
		return what(of(m))
	}
}

// recalls asks what masters remember of the cluster; what is here does not help.
func recalls(what func(*site, state.Of) error) func(*site) error {
	return func(s *site) error { return what(s, s.Reached("m2", "m3")) }
}

// errLost is of what ends because a host could not be looked at.
var errLost = errors.New("m1 does not answer")

func runs(p pipe) func(*site) error { return func(s *site) error { return s.Run(p, nil) } }

// awayRows are the commands of the table, with what each does on a simulated site.
var awayRows = []struct {
	command string
	run     func(*site) error
	skips   bool // it has --skip-host
}{
	{"kubexm get nodes", func(s *site) error {
		return asks(func(h *steps.Host) error {
			_, err := kubectl.Run(s.t.Context(), h, "get", "nodes")
			return err
		})(s)
	}, false},
	{"kubexm get clusters -f", recalls(func(s *site, of state.Of) error {
		e, err := state.Exists(s.t.Context(), s.Cluster, s.t.TempDir(), of)
		if e == nil {
			return fmt.Errorf("no record: %w", err)
		}
		return err
	}), false},
	{"kubexm get operations -f", recalls(func(s *site, of state.Of) error {
		all, err := state.History(s.t.Context(), s.Cluster, s.t.TempDir(), of)
		if len(all) != 1 {
			return fmt.Errorf("the history is %v: %w", all, err)
		}
		return err
	}), false},
	{"kubexm get releases", func(s *site) error {
		s.Skip = []string{"m1"}
		defer func() { s.Skip = nil }()
		of := s.Reached()
		for _, h := range s.Cluster.Spec.Hosts {
			if h.Name == "m1" {
				continue
			}
			if r, err := cluster.ReadRelease(s.t.Context(), of(h)); r == nil {
				s.t.Errorf("%s: no release, %v", h.Name, err)
			}
		}
		return errLost // it tells of the others first
	}, false},
	{"kubexm get endpoint", func(s *site) error {
		of := s.Reached("m2", "m3")
		for _, m := range []string{"m2", "m3"} {
			h, _ := s.Cluster.Host(m)
			if ready, err := controlplane.APIServerReady(s.t.Context(), of(h)); err != nil || !ready {
				s.t.Errorf("%s: ready %v, %v", m, ready, err)
			}
		}
		return errLost // as above
	}, false},
	{"kubexm operation show", recalls(func(s *site, of state.Of) error {
		_, err := state.Operation(s.t.Context(), s.Cluster, s.t.TempDir(), of)
		return err
	}), false},
	{"kubexm operation abandon", func(s *site) error {
		of := s.Reached("m2", "m3")
		o, err := installer.NewOperation(s.t.Context(), s.Graph(pipeline.Create, nil), s.Cluster, s.Workdir, "tester@site", of)
		if err != nil {
			return err
		}
		if err := o.Begin(s.t.Context()); err != nil {
			return err
		}
		given, err := installer.Abandon(s.t.Context(), s.Cluster, s.Workdir, of)
		if given == nil || given.ID != o.ID() {
			return fmt.Errorf("abandoned %v: %w", given, err)
		}
		return err
	}, false},
	{"kubexm kubeconfig", func(s *site) error {
		return asks(func(h *steps.Host) error {
			text, err := cluster.Kubeconfig(s.t.Context(), s.Cluster, h)
			if !strings.Contains(string(text), h.Address) {
				return fmt.Errorf("%w: the kubeconfig leads elsewhere than to %s", err, h.Name)
			}
			return err
		})(s)
	}, false},
	{"kubexm diff", func(s *site) error {
		found, err := s.Drift(nil, "m1")
		if err != nil {
			return err
		}
		lost := installer.HostErrors{&installer.HostError{Host: "m1", Err: errLost}}
		if slices.ContainsFunc(append(lost.Drifts(), found...), installer.Drift.Counts) {
			return errLost
		}
		return nil
	}, false},
	{"kubexm install", runs(pipeline.Create), true},
	{"kubexm delete cluster", runs(pipeline.Delete), true},
	{"kubexm delete cluster --preserve-data", func(s *site) (err error) {
		s.preserving(func() { err = s.Run(pipeline.Delete, nil) })
		return err
	}, true},
	{"kubexm reset", runs(pipeline.Reset), true},
	{"kubexm restart", func(s *site) error {
		var failed []error
		for _, p := range pipeline.Restarts() {
			if err := s.Run(func() plan.Pipeline { return p }, nil); err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) != 0 && len(failed) != len(pipeline.Restarts()) {
			s.t.Errorf("some restarts go on, and some end: %v", failed)
		}
		return errors.Join(failed...)
	}, false},
	{"kubexm preflight", runs(pipeline.Preflight), false},
	{"kubexm hosts prepare", runs(pipeline.Prepare), false},
}

// TestWhatGoesOnWithoutTheFirstMaster: docs/hosts-down.md says what simulated sites show;
// -update writes it.
func TestWhatGoesOnWithoutTheFirstMaster(t *testing.T) {
	t.Parallel()
	const path = "../docs/hosts-down.md"
	says := map[bool]string{true: "goes on", false: "ends; nothing is changed"}
	var table strings.Builder
	for _, row := range awayRows {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, "masters-stacked")
			s.Must(pipeline.Create, "create")
			s.PowerOff("m1")
			before := s.State(true)
			err := row.run(s)
			if err != nil {
				s.Same(row.command+": ended, and nothing changed", before, s.State(true))
			}
			with := "has no such flag"
			if row.skips {
				s.Skip = []string{"m1"}
				with = map[bool]string{true: "goes on", false: "refused"}[row.run(s) == nil]
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", row.command, says[err == nil], with)
		})
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "|---|---|---|\n"
	before, rest, ok := strings.Cut(string(text), head)
	i := strings.Index(rest, "\n\n")
	if !ok || i < 0 {
		t.Fatalf("%s has no table", path)
	}
	want := before + head + strings.TrimSuffix(table.String(), "\n") + rest[i:]
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not say what happens: go test ./installer -run WithoutTheFirstMaster -update writes it. The table:\n%s", path, table.String())
	}
}
