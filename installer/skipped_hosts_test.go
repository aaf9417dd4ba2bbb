package installer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestADeletionReachesHostsOfTheRecord: also one that the config has forgotten, and none
// that is to be passed over.
func TestADeletionReachesHostsOfTheRecord(t *testing.T) {
	t.Parallel()
	a, b, c := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	applied, err := clusterOf(t, host("a", a, ""), host("b", b, ""), host("c", c, "")).Public()
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, clusterOf(t, host("a", a, "")), a, b, c)
	dir := filepath.Join(o.Base, ".kubexm", "demo", "applied")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.yaml"), applied, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, d, failed, err := ReachDeletion(t.Context(), o, []string{"c"})
	if err != nil || len(failed) > 0 {
		t.Fatalf("%v, %v", err, failed)
	}
	if got := s.Reached(); !slices.Equal(got, []string{"a", "b"}) || a.Connections() != 1 || b.Connections() != 1 || c.Connections() != 0 {
		t.Errorf("reached %v; connections: %d, %d, %d", got, a.Connections(), b.Connections(), c.Connections())
	}
	for _, h := range d.Cluster().Spec.Hosts {
		if x := s.Host(h); x == nil || x.Cluster != s.Cluster || len(x.Cluster.Spec.Hosts) != 2 {
			t.Errorf("%s works on another cluster", h.Name)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b.Close()
	s, _, failed, err = ReachDeletion(t.Context(), o, nil)
	if err != nil || !slices.Equal(failed.Names(), []string{"b"}) {
		t.Fatalf("%v, %v", err, failed)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	var unknown *state.UnknownHostError
	if _, _, _, err := ReachDeletion(t.Context(), o, []string{"d"}); !errors.As(err, &unknown) || unknown.Name != "d" {
		t.Errorf("%v", err)
	}
	// Without a record here the cluster is asked whether it knows the host; it does not.
	o.Base = t.TempDir()
	if _, _, _, err := ReachDeletion(t.Context(), o, []string{"d"}); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

// TestALeftHostIsCleaned: what a deletion has left on a host goes before anything else,
// by the config of then, and is asked anew what it is.
func TestALeftHostIsCleaned(t *testing.T) {
	t.Parallel()
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c}
	sim := kase.Sim(t)
	before := sim.Snapshot()
	install := op.Ensure("x.install", []op.Resource{op.Dir{Path: "/var/lib/containerd"}})
	h := kase.NewHost(t, sim, install)
	if err := install.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, c, h)
	d, err := state.NewDeletion(c, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Skip = []string{"node1"}
	if err := d.Begin(s.Workdir.Dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if cleaned, err := s.Clean(t.Context(), RunOptions{Parallel: 1}); err != nil || len(cleaned) > 0 {
		t.Errorf("while the deletion has not ended: %v, %v", cleaned, err)
	}
	if err := d.End(s.Workdir.Dir); err != nil {
		t.Fatal(err)
	}
	if cleaned, err := s.Clean(t.Context(), RunOptions{Parallel: 1}); err != nil || !slices.Equal(cleaned, []string{"node1"}) {
		t.Errorf("%v, %v", cleaned, err)
	}
	for _, l := range sim.Snapshot() {
		if !slices.Contains(before, l) && strings.Contains(l, "/var/lib/") {
			t.Errorf("left: %s", l)
		}
	}
	if left, err := state.ReadLeft(s.Workdir.Dir); err != nil || len(left) > 0 {
		t.Errorf("still remembered: %+v, %v", left, err)
	}
	if cleaned, err := s.Clean(t.Context(), RunOptions{Parallel: 1}); err != nil || len(cleaned) > 0 {
		t.Errorf("cleaned twice: %v, %v", cleaned, err)
	}
}
