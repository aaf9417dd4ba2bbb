package installer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// TestASessionAsRecorded: the record says what the cluster is, and which bundle counts;
// the config says how hosts are reached. Nothing is left in the workdir.
func TestASessionAsRecorded(t *testing.T) {
	t.Parallel()
	a, b, c := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	applied := clusterOf(t, host("a", a, ""), host("b", b, ""))
	edited := clusterOf(t, host("a", a, ""), host("b", b, ""), host("c", c, ""))
	edited.Spec.Kubernetes.MaxPods = 200
	o := options(t, edited, a) // of b and c nobody knows the key
	m := newMill(t)
	path := m.build("full.tar.zst", nil, "kubelet 1", "one")
	full := open(t, path)
	lock, err := full.Document("lock")
	if err != nil {
		t.Fatal(err)
	}
	config, err := applied.Public()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReachRecorded(t.Context(), o); !errors.Is(err, ErrNoRecord) {
		t.Errorf("without a record: %v", err)
	}
	w := Workdir{Dir: filepath.Join(o.Base, ".kubexm", "demo")}
	is := digest.FromBytes(lock).String()
	put := func(name string, text []byte) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(w.Applied(""), 0o700), os.WriteFile(w.Applied(name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("config.yaml", config)
	put("applied.json", []byte(`{"lock": "`+is+`", "bundle": "`+full.Root.Digest.String()+`"}`))
	put("kubexm.lock", lock)
	put(usedName, encodeUsed([]UsedBundle{{Root: full.Root.Digest.String(), Path: path, Bytes: full.Size()}}))

	look := func(when string, given bool, check func(*Session)) {
		t.Helper()
		o := o
		if given {
			o.Bundle = open(t, path)
		}
		s, failed, err := ReachRecorded(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := failed.Names(); !slices.Equal(got, []string{"b"}) || len(s.Cluster.Spec.Hosts) != 2 || s.Cluster.Spec.Kubernetes.MaxPods != 110 {
			t.Errorf("%s: not reached %v, of %+v", when, got, s.Cluster.Spec)
		}
		check(s)
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if left, _ := filepath.Glob(filepath.Join(w.Dir, ".look-*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", when, left)
		}
	}
	whole := func(s *Session) {
		if _, ok := s.hosts["a"].Artifacts.(artifacts); !ok {
			t.Errorf("the bundle is not used: %T", s.hosts["a"].Artifacts)
		}
	}
	look("with the bundle", true, whole)
	look("with the bundle that lies here", false, whole)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look("with its lock", false, func(s *Session) {
		if has, ok := s.hosts["a"].Artifacts.(*absentArtifacts); !ok || has.lock == nil || len(has.Images()) != 1 {
			t.Errorf("the lock is not used: %T", s.hosts["a"].Artifacts)
		}
		d, err := s.Drift(t.Context())
		if err != nil || slices.ContainsFunc(d, func(d Drift) bool { return d.Host != "a" }) || len(d) == 0 {
			t.Errorf("%v of %+v", err, d) // a blank machine lacks all of it
		}
	})
	put("kubexm.lock", []byte("another"))
	look("with nothing", false, func(s *Session) {
		if has, ok := s.hosts["a"].Artifacts.(*absentArtifacts); !ok || has.lock != nil {
			t.Errorf("another lock is used: %T", s.hosts["a"].Artifacts)
		}
	})
	var other *OtherBundleError
	o.Bundle = open(t, m.build("other.tar.zst", nil, "kubelet 2", "one"))
	if _, _, err := ReachRecorded(t.Context(), o); !errors.As(err, &other) || !strings.Contains(err.Error(), is) {
		t.Errorf("another bundle: %v", err)
	}
}

// TestWithoutABundle: what is asked of it is refused, and never answered with nothing.
func TestWithoutABundle(t *testing.T) {
	t.Parallel()
	a := (&absentArtifacts{set: "v1.34.10"}).fresh()
	if _, err := a.Image(manifest.Need{Kind: manifest.Image, Name: "pause"}); !errors.Is(err, ErrNoBundle) {
		t.Error(err)
	}
	if a.asked() || len(a.Images()) > 0 || !a.asked() || a.fresh().asked() {
		t.Error("who asks for all images is not told")
	}
}
