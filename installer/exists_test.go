package installer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// revised makes a record in a file one of another revision, of a cluster with another
// highest serial: by that it is known again.
func revised(t *testing.T, text string, revision, highest int64) string {
	t.Helper()
	var all map[string]string
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	all["revision"], all["highest"] = strconv.FormatInt(revision, 10), strconv.FormatInt(highest, 10)
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// here changes the record on this machine.
func (s *site) here(revision, highest int64) {
	s.t.Helper()
	name := filepath.Join(s.Workdir, "applied", "applied.json")
	text, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(revised(s.t, string(text), revision, highest)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// copied changes the copy of the record on a master.
func (s *site) copied(master string, revision, highest int64) {
	s.t.Helper()
	const name = "/var/lib/kubexm/demo/applied/record.json"
	s.Sims[master].AddFile(name, revised(s.t, s.Sims[master].Read(name), revision, highest), 0o600)
}

// made gives a site whose cluster was made, with three masters.
func made(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "masters-stacked")
	s.Components = map[string]string{"containerd": "2.1.4", "kubelet": s.Cluster.Spec.Kubernetes.Version}
	s.Must(pipeline.Create, "create")
	return s
}

// TestTheOrderOfTrust: of the cluster, the copies on masters and the one here, which is
// believed when they differ. No host has to be the first master.
func TestTheOrderOfTrust(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*site)
		silent []string
		want   int64 // the highest serial of the record that is believed; 0: none
	}{
		"the cluster before newer copies":          {func(s *site) { s.copied("m1", 9, 3); s.here(9, 4) }, nil, 1},
		"through the second master":                {func(s *site) { s.copied("m2", 9, 3); s.here(9, 4) }, []string{"m1"}, 1},
		"no API: the newest copy of a master":      {func(s *site) { s.noAPI(); s.copied("m2", 5, 3); s.copied("m3", 6, 4); s.here(5, 5) }, nil, 4},
		"no API, no first master":                  {func(s *site) { s.noAPI(); s.copied("m2", 5, 3); s.here(1, 5) }, []string{"m1"}, 3},
		"no API: as new here as on masters":        {func(s *site) { s.noAPI(); s.copied("m2", 5, 3); s.here(5, 5) }, nil, 3},
		"no API: newer here than on masters":       {func(s *site) { s.noAPI(); s.copied("m2", 5, 3); s.here(6, 5) }, nil, 5},
		"no master answers":                        {func(s *site) { s.here(6, 5) }, []string{"m1", "m2", "m3"}, 5},
		"no master answers, and nothing here":      {func(s *site) { s.forgotten() }, []string{"m1", "m2", "m3"}, 0},
		"a copy that cannot be read is no copy":    {func(s *site) { s.noAPI(); s.damaged("m1"); s.copied("m2", 5, 3) }, nil, 3},
		"the cluster's record was removed by hand": {func(s *site) { s.unrecorded(); s.copied("m2", 5, 3) }, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := made(t)
				c.change(s)
				e, err := state.Exists(t.Context(), s.Cluster, s.Workdir, s.Hosts(c.silent...))
				if err != nil {
					t.Fatal(err)
				}
				if e == nil || e.Highest != c.want {
					if e != nil || c.want != 0 {
						t.Errorf("%+v, want that with highest serial %d", e, c.want)
					}
					return
				}
				if h, ok := e.Host("m2"); !ok || !h.Joined || !slices.Contains(h.Roles, "master") || h.Components["containerd"] != "2.1.4" {
					t.Errorf("m2 in the record: %+v", h)
				}
				if e.Set != s.Cluster.Spec.Kubernetes.Version || e.Lead != "m1" || e.Serial != 1 {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// noAPI has no API server answer.
func (s *site) noAPI() {
	for _, m := range s.Cluster.HostsWith(manifest.RoleMaster) {
		s.Kube.Silence(m.Name, true)
	}
}

func (s *site) damaged(master string) {
	s.Sims[master].AddFile("/var/lib/kubexm/demo/applied/record.json", "{", 0o600)
}

func (s *site) forgotten() {
	if err := os.RemoveAll(filepath.Join(s.Workdir, "applied")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) unrecorded() {
	s.Sims["m1"].RemoveAll("/var/lib/etcd/member/ConfigMap/kube-system/kubexm")
	s.Sims["m1"].RemoveAll("/var/lib/etcd/member/ConfigMap.core/kube-system/kubexm")
	if s.Kube.Object("v1", "ConfigMap", "kube-system", "kubexm") != nil {
		s.t.Fatal("the record is still there")
	}
}

// TestTheRecordOfAnOlderKubexm: without a format it is read all the same, and the next
// run writes one.
func TestTheRecordOfAnOlderKubexm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		old := strings.NewReplacer(`"format": "2",`, "", `"revision": "1",`, "", `"lead": "m1",`, "")
		name := filepath.Join(s.Workdir, "applied", "applied.json")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]string
		if err := json.Unmarshal([]byte(old.Replace(string(text))), &all); err != nil || all["format"] != "" {
			t.Fatalf("%s: %v", text, err)
		}
		delete(all, "release")
		if text, err = json.Marshal(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := state.Here(s.Workdir)
		if err != nil || e == nil || e.Set != s.Cluster.Spec.Kubernetes.Version || e.Lead != "" || e.Revision != 0 || e.Components["containerd"] != "2.1.4" {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestAWorkdirTakesTheRecord: one without a record takes it from a master, with the lock;
// an older one is replaced; one that is up to date stays, also where masters have older
// copies.
func TestAWorkdirTakesTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		files := func() map[string]string {
			out := map[string]string{}
			for _, name := range []string{"config.yaml", "applied.json"} {
				text, err := os.ReadFile(filepath.Join(s.Workdir, "applied", name))
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				out[name] = string(text)
			}
			return out
		}
		want := files()
		adopt := func(when, from string, replaced bool, silent ...string) {
			t.Helper()
			at, older, err := installer.Adopt(t.Context(), s.Cluster, s.Workdir, s.Hosts(silent...))
			if err != nil || at != from || older != replaced {
				t.Errorf("%s: from %q, replaced %t, %v; want %q, %t", when, at, older, err, from, replaced)
			}
		}
		adopt("up to date", "", false)
		s.forgotten()
		adopt("without a record", "m2", false, "m1")
		if d := cmp.Diff(want, files()); d != "" {
			t.Error(d)
		}
		s.here(0, 1)
		if err := os.WriteFile(filepath.Join(s.Workdir, "applied", "config.yaml"), []byte("kind: Old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		adopt("an older one", "m1", true)
		if d := cmp.Diff(want, files()); d != "" {
			t.Error(d)
		}
		s.noAPI()
		s.here(2, 1)
		adopt("newer than the copies on masters", "", false)
	})
}

// TestEveryHostKnowsItsRelease, and every master what was applied: for root alone, with
// the components of the host's own roles.
func TestEveryHostKnowsItsRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		of := s.Hosts()
		for _, h := range s.Cluster.Spec.Hosts {
			r, err := cluster.ReadRelease(t.Context(), of(h))
			if err != nil || r == nil || r.Set != s.Cluster.Spec.Kubernetes.Version || r.Time.IsZero() {
				t.Errorf("%s: %+v, %v", h.Name, r, err)
				continue
			}
			node := len(s.Cluster.RolesOf(h.Name)) > 0 && !slices.Equal(s.Cluster.RolesOf(h.Name), []string{manifest.RoleRegistry})
			if _, has := r.Components["containerd"]; has != node {
				t.Errorf("%s: containerd in its release: %t, want %t", h.Name, has, node)
			}
			copied, err := cluster.ReadCopy(t.Context(), of(h))
			if master := slices.Contains(s.Cluster.RolesOf(h.Name), manifest.RoleMaster); err != nil || (copied != nil) != master {
				t.Errorf("%s has a copy of the record: %t, want %t; %v", h.Name, copied != nil, master, err)
			}
		}
	})
}

// TestAPreservedClusterLeavesNoRecord: what a deletion leaves of a cluster whose data is
// preserved tells of no cluster that exists.
func TestAPreservedClusterLeavesNoRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := made(t)
		s.Cluster.Spec.Etcd.PreserveData = true
		s.Must(pipeline.Delete, "delete")
		for _, line := range s.State(true) {
			for _, name := range []string{"release.json", "record.json", "kubexm.lock.zst", "/applied"} {
				if strings.Contains(line, name) {
					t.Errorf("left: %s", line)
				}
			}
		}
	})
}
