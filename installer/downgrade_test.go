package installer

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestCheckSerial(t *testing.T) {
	t.Parallel()
	lock := &manifest.Lock{Serial: 20260101000000}
	for name, c := range map[string]struct {
		record string
		older  bool
		broken bool
	}{
		"no record":         {"", false, false},
		"the same":          {`{"serial": "20260101000000"}`, false, false},
		"an older one":      {`{"serial": "20250101000000"}`, false, false},
		"a newer one":       {`{"serial": "20260101000001"}`, true, false},
		"a newer one once":  {`{"serial": "20250101000000", "highest": "20260601000000"}`, true, false},
		"before it counted": {`{"bundle": "sha256:x"}`, false, false},
		"damaged":           {`{"serial": `, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			if c.record != "" {
				dir := filepath.Join(base, ".kubexm", "demo", "applied")
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "applied.json"), []byte(c.record), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			err := CheckSerial(base, lock, "demo")
			if older := errors.Is(err, bundle.TrustSerial) && errors.Is(err, bundle.ErrUntrusted); older != c.older || (err != nil) != (c.older || c.broken) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSerialOfAClusterThatDoesNotAnswer: it may have had a newer bundle.
func TestSerialOfAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const complete = "/etc/kubernetes/kubexm-complete"
	for name, c := range map[string]struct {
		change  func(*conntest.Sim)
		allow   bool
		refused bundle.TrustCode
		waits   bool
	}{
		"it answers, and had a newer one": {func(*conntest.Sim) {}, false, bundle.TrustSerial, false},
		"it answers, and that is meant":   {func(*conntest.Sim) {}, true, "", false},
		"it does not answer":              {func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes/manifests") }, false, bundle.TrustSerialUnknown, true},
		"it does not, and that is meant":  {func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes/manifests") }, true, "", false},
		"one that was never complete":     {func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes/manifests"); s.RemoveAll(complete) }, false, "", false},
		"there is none":                   {func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes") }, false, "", false},
		"it does not answer for a minute": {func(s *conntest.Sim) {
			manifests := s.Read("/etc/kubernetes/manifests/kube-apiserver.yaml")
			s.RemoveAll("/etc/kubernetes/manifests")
			time.AfterFunc(time.Minute, func() { s.AddFile("/etc/kubernetes/manifests/kube-apiserver.yaml", manifests, 0o600) })
		}, false, bundle.TrustSerial, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := steptest.Cluster(t, steptest.Small)
				kase := steptest.Case{Cluster: small, Before: steptest.ExistingCluster(small), Applied: steps.Applied{Config: []byte("x"), Serial: "5", Highest: "20260601000000"}}
				sim := kase.Sim(t)
				sim.AddFile(complete, "x", 0o600)
				step := cluster.Record()
				h := kase.NewHost(t, sim, step)
				if err := step.Run(t.Context(), h); err != nil {
					t.Fatal(err)
				}
				s := &Session{Options: Options{Cluster: small, Log: slog.New(slog.DiscardHandler), Bundle: &bundle.Bundle{Lock: &manifest.Lock{Serial: 20260101000000}}},
					Workdir: Workdir{Dir: t.TempDir()}, hosts: map[string]*steps.Host{h.Name: h}}
				c.change(sim)
				begin := time.Now()
				err := s.CheckSerial(t.Context(), c.allow)
				if (err != nil) != (c.refused != "") || err != nil && (!errors.Is(err, c.refused) || !errors.Is(err, bundle.ErrUntrusted)) {
					t.Errorf("%v, want %q", err, c.refused)
				}
				if took := time.Since(begin); (took > 0) != c.waits || took > serialWait+10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestHighestSerialNeverFalls: a run that did not hear of a serial does not lower it.
func TestHighestSerialNeverFalls(t *testing.T) {
	t.Parallel()
	small := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: small, Before: steptest.ExistingCluster(small), Workdir: t.TempDir()}
	sim := kase.Sim(t)
	for _, x := range []struct{ serial, highest, want string }{{"9", "9", "9"}, {"5", "5", "9"}, {"5", "12", "12"}, {"12", "", "12"}} {
		kase.Applied = steps.Applied{Config: []byte("x"), Serial: x.serial, Highest: x.highest}
		for _, step := range []steps.Step{cluster.Record(), cluster.WriteApplied()} {
			h := kase.NewHost(t, sim, step)
			if err := step.Run(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if v, err := step.Precheck(t.Context(), h); err != nil || v != steps.Done {
				t.Errorf("%+v: %v, %v", x, v, err)
			}
			serial, err := cluster.AppliedSerial(t.Context(), h)
			if err != nil || strconv.FormatInt(serial, 10) != x.want {
				t.Errorf("%+v: the cluster has %d, %v", x, serial, err)
			}
		}
		serial, err := state.SerialHere(kase.Workdir)
		if err != nil || strconv.FormatInt(serial, 10) != x.want {
			t.Errorf("%+v: this machine has %d, %v", x, serial, err)
		}
	}
}
