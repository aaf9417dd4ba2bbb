package cluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// do runs steps on a host, each as a part of a run that applies what kase does.
func do(t *testing.T, kase steptest.Case, s *conntest.Sim, ss ...steps.Step) {
	t.Helper()
	for _, step := range ss {
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatalf("%s: %v", step.Meta().Name, err)
		}
	}
}

// TestTheRecordOfACluster: its format, what is new in it, and what an older kubexm reads.
func TestTheRecordOfACluster(t *testing.T) {
	kase := standing(with(t, ""))
	s := kase.Sim(t)
	asked := func() *cluster.Recorded {
		t.Helper()
		r, err := cluster.FetchRecorded(t.Context(), kase.NewHost(t, s, cluster.Record()))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	do(t, kase, s, cluster.Record())
	r := asked()
	want := map[string]string{
		"format": "2", "config": "sha256:c", "lock": "sha256:l", "serial": "7", "highest": "7", "bundle": "sha256:r", "lead": "node1", "revision": "1",
	}
	for key, value := range want {
		if r.Summary[key] != value {
			t.Errorf("%s is %q, want %q", key, r.Summary[key], value)
		}
	}
	var release struct {
		Set        string
		Components map[string]string
	}
	if err := json.Unmarshal([]byte(r.Summary["release"]), &release); err != nil || release.Set != "v1.34.10" || release.Components["kubelet"] != "v1.34.10" {
		t.Errorf("%s: %v", r.Summary["release"], err)
	}
	if r.Set() != "v1.34.10" || r.Lead() != "node1" || r.Serial() != 7 || !strings.Contains(r.Summary["components"], `"kubelet":"v1.34.10"`) {
		t.Errorf("%+v", r)
	}
	// A run that applies the same leaves the record as it is, another makes it a newer one.
	do(t, kase, s, cluster.Record())
	if r := asked(); r.Revision() != 1 {
		t.Errorf("the same is revision %d", r.Revision())
	}
	kase.Applied.Config = []byte("kind: Other\n")
	do(t, kase, s, cluster.Record())
	if r := asked(); r.Revision() != 2 {
		t.Errorf("another config is revision %d", r.Revision())
	}
}

// TestTheCopyOfAMaster: it holds what the cluster says, for root alone, and the lock.
func TestTheCopyOfAMaster(t *testing.T) {
	kase := standing(with(t, ""))
	kase.Applied.LockDigest = digest.FromBytes(kase.Applied.Lock).String()
	s := kase.Sim(t)
	h := kase.NewHost(t, s, cluster.WriteCopy())
	if r, err := cluster.ReadCopy(t.Context(), h); err != nil || r != nil {
		t.Fatalf("before: %v, %v", r, err)
	}
	if v, err := cluster.WriteCopy().Precheck(t.Context(), h); err != nil || v != steps.Todo {
		t.Errorf("without a record in the cluster: %v, %v", v, err)
	}
	do(t, kase, s, cluster.Record(), cluster.WriteCopy(), cluster.WriteApplied())
	asked, err := cluster.FetchRecorded(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	read, err := cluster.ReadCopy(t.Context(), h)
	if err != nil || !read.Same(asked) || read.Revision() != asked.Revision() {
		t.Errorf("the copy says %+v, the cluster %+v: %v", read, asked, err)
	}
	lock, err := cluster.LockOf(t.Context(), h, read)
	if err != nil || string(lock) != "kind: Lock\n" {
		t.Errorf("lock %q, %v", lock, err)
	}
	other := *read
	other.Summary = map[string]string{"lock": "sha256:other"}
	if lock, err := cluster.LockOf(t.Context(), h, &other); err != nil || lock != nil {
		t.Errorf("of another record: %q, %v", lock, err)
	}
	for _, line := range s.Snapshot() {
		if strings.Contains(line, "/var/lib/kubexm/demo/applied") && !strings.Contains(line, " -rw------- 0:0 ") && !strings.Contains(line, " drwx------ 0:0") {
			t.Errorf("not for root alone: %s", line)
		}
	}
	// The same documents here, as WriteRecorded and WriteApplied write them.
	dir := t.TempDir()
	if err := cluster.WriteRecorded(dir, read, lock); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.yaml", "applied.json", "kubexm.lock"} {
		a, errA := os.ReadFile(filepath.Join(dir, "applied", name))
		b, errB := os.ReadFile(filepath.Join(h.Workdir, "applied", name))
		if errA != nil || errB != nil && h.Workdir == "" {
			t.Error(errA, errB)
		}
		if d := cmp.Diff(string(b), string(a)); errB == nil && d != "" {
			t.Error(d)
		}
	}
}

// TestTheReleaseOfAHost: the components of its roles, with digests where they are known,
// the release before, and the operation that brought it.
func TestTheReleaseOfAHost(t *testing.T) {
	kase := standing(with(t, ""))
	s := kase.Sim(t)
	read := func() *cluster.Release {
		t.Helper()
		r, err := cluster.ReadRelease(t.Context(), kase.NewHost(t, s, cluster.WriteRelease()))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); r != nil {
		t.Errorf("before: %+v", r)
	}
	do(t, kase, s, cluster.WriteRelease())
	want := &cluster.Release{Set: "v1.34.10", Operation: "op-1", Components: map[string]cluster.Component{
		"kubelet": {Version: "v1.34.10", Digest: "sha256:k"}, "containerd": {Version: "2.1.4"}, "registry": {Version: "3.0.0"}, "coredns": {Version: "v1.12"},
	}}
	first := read()
	want.Time = first.Time
	if d := cmp.Diff(want, first); d != "" || first.Time.IsZero() {
		t.Errorf("(-want +got)\n%s", d)
	}
	// The same release of a later operation leaves it, another one replaces it.
	kase.Applied.Operation = "op-2"
	do(t, kase, s, cluster.WriteRelease())
	if d := cmp.Diff(first, read()); d != "" {
		t.Error(d)
	}
	kase.Applied.Set, kase.Applied.Components = "v1.35.0", map[string]string{"kubelet": "v1.35.0"}
	do(t, kase, s, cluster.WriteRelease())
	if r := read(); r.Set != "v1.35.0" || r.Before != "v1.34.10" || r.Operation != "op-2" || len(r.Components) != 1 {
		t.Errorf("%+v", r)
	}
}
