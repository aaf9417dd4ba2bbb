package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/testdata/fair"
	"github.com/mensylisir/kubexm/testdata/lab"
)

// isCreated makes the cluster, with a worker whose kubelet does not start at first. The
// same command goes on where it stopped: the README's, with the kubexm that people get.
func (s *walkSite) isCreated(t testing.TB) {
	s.failsAtAWorker(t, s.configFile(), "h6")
	if t.Failed() {
		t.FailNow() // the rest would take minutes, and say nothing more
	}
	r := s.quickstart(t, s.dir, "install")
	said(t, r, 0, "create of cluster site: done", "already", "h2", "h3", "h4", "h5", "h6", "Ready", "Service smoke by name: ", "NodePort")
	s.showsNoPassword(t, r)
	s.quickstart(t, s.dir, "egress")
}

// isAsItWas installs again where nothing is left to do: here, and from a machine that
// lacks what was made and fetched here. Then it reads what is on record.
func (s *walkSite) isAsItWas(t testing.TB) {
	config := s.configFile()
	signing, public := s.signingKey(t)
	clock := fair.Start()
	r := s.kubexm(t, append(s.creation(), signing...)...)
	said(t, r, 0, "0 steps ran", "signed with ")
	clock.Limit(t, r.took, time.Minute) // seconds, where nothing else is at work
	s.onRecord(t, public)
	said(t, s.kubexm(t, "get", "nodes", "-f", config), 0, "h2", "h3", "h4", "h5", "h6", "Ready")
	said(t, s.kubexm(t, "diff", "-f", config), 0)
	s.folder = t.TempDir()
	defer func() { s.folder = "" }()
	said(t, s.install(t, config), 0, "2 steps ran", "create of cluster site: done")
}

// isHardened holds the cluster against the table, and asks for certificates of kubelets.
func (s *walkSite) isHardened(t testing.TB) {
	s.hardened(t, hardenedCluster{nodes: []string{"h2", "h3", "h4", "h5", "h6"}, masters: s.masters, etcd: s.masters, etcdctl: s.etcdctl("h2")})
	s.kubeletsAreSigned(t, s.configFile())
}

// aWorkerLeavesAndReturns deletes a worker, which then is what it was, and adds it again.
func (s *walkSite) aWorkerLeavesAndReturns(t testing.TB) {
	config := s.configFile()
	r := s.kubexm(t, "node", "delete", "h6", "-f", config, "--yes")
	said(t, r, 0, "node-delete of cluster site: done", "h6")
	_, receipt, _ := strings.Cut(r.stdout, "  receipt  ")
	receipt, _, _ = strings.Cut(receipt, " ")
	var left installer.CheckedReceipt
	s.told(t, &left, "receipt", "show", "-o", "json", receipt)
	if left.Operation != "node-delete" || len(left.Left) != 1 || left.Left[0].Name != "h6" || len(left.Hosts) != 5 {
		t.Errorf("the receipt says %+v", left)
	}
	s.nodesAre(t, "h2", "h3", "h4", "h5")
	s.hostAsBefore(t, s.before(t), "h6")
	said(t, s.kubexm(t, "node", "add", "h6", "--bundle", s.bundle, "--allow-unsigned", "-f", config), 0, "node-add of cluster site: done", "h6", "  receipt  ")
	s.nodesAre(t, "h2", "h3", "h4", "h5", "h6")
	s.settled(t, config)
	s.smoke(t)
}

// isDeleted takes the cluster away, and compares every host with what it was.
func (s *walkSite) isDeleted(t testing.TB) {
	s.deleted(t, s.configFile())
	s.asBefore(t, s.before(t))
}

// passesPreflight looks at real hosts that are as they have to be: no error, and
// nothing is left on them of it.
func (s *labSite) passesPreflight(t testing.TB) {
	t.Helper()
	s.folder = t.TempDir() // what it learns of the hosts' keys is not for those that come after it
	defer func() { s.folder = "" }()
	config := filepath.Join(s.dir, "config.yaml")
	for _, more := range [][]string{nil, {"--bundle", s.bundle, "--allow-unsigned"}, {"--bundle", s.bundle, "--allow-unsigned", "-o", "json"}} {
		clock := fair.Start()
		r := s.kubexm(t, append([]string{"preflight", "-f", config}, more...)...)
		said(t, r, 0)
		clock.Limit(t, r.took, 10*time.Second) // two for four hosts, by a kubexm that looks for no races
		if strings.Contains(r.stdout, `"severity":"error"`) {
			t.Error("an error, and exit code 0")
		}
		if len(more) == 4 {
			last := r.stdout[strings.LastIndexByte(strings.TrimSpace(r.stdout), '\n')+1:]
			var line struct {
				Type    string
				Summary struct {
					Pipeline string
					Steps    struct{ Total, Checked, Failed, Ran int }
				}
			}
			if err := json.Unmarshal([]byte(last), &line); err != nil {
				t.Fatal(err)
			}
			if n := line.Summary.Steps; line.Summary.Pipeline != "preflight" || n.Checked != n.Total || n.Total < 10*len(s.Hosts) || n.Failed+n.Ran > 0 {
				t.Errorf("%+v", line)
			}
		}
	}
	for _, h := range s.Hosts {
		if got := s.on(t, h.Name, "ls -d /run/kubexm /var/lib/kubexm 2>/dev/null || true"); got != "" {
			t.Errorf("%s: left %s", h.Name, got)
		}
	}
}

// isRestarted has every part of the cluster restart, and a counter written to it meanwhile:
// what it was told it has.
func (s *walkSite) isRestarted(t testing.TB) {
	config := s.configFile()
	running := func() map[string]string {
		out := map[string]string{}
		for _, h := range s.masters {
			out[h+" etcd"] = s.on(t, h, "systemctl show -p MainPID --value etcd")
			out[h+" API server"] = s.on(t, h, "crictl ps -q --name kube-apiserver")
		}
		for _, h := range append(slices.Clone(s.masters), "h5", "h6") {
			for _, unit := range []string{"kubelet", "containerd"} {
				out[h+" "+unit] = s.on(t, h, "systemctl show -p MainPID --value "+unit)
			}
		}
		return out
	}
	before := running()
	r := s.kubexm(t, "restart", "all", "-f", config, "--batch", "2", "--yes")
	said(t, r, 0, "restart-all of cluster site: done")
	for what, was := range before {
		if now := running()[what]; now == was || now == "" {
			t.Errorf("%s is %q as before: %q", what, now, was)
		}
	}
	s.smoke(t)
	said(t, s.kubexm(t, "diff", "-f", config), 0)
}

// comesBackEachTime holds what the legs stand on: a checkpoint of all hosts takes two
// seconds at most, and the cluster that is restored serves within a minute, ten times of
// ten.
func (s *walkSite) comesBackEachTime(t testing.TB) {
	for i := range 10 {
		name := fmt.Sprintf("again-%d", i)
		clock := fair.Start()
		if err := s.checkpoint(t, name); err != nil {
			t.Fatal(err)
		}
		saving := clock.Took()
		clock.Limit(t, saving, 2*time.Second)
		clock = fair.Start()
		if err := s.restore(t, name); err != nil {
			t.Fatal(err)
		}
		took := clock.Took()
		clock.Limit(t, took, time.Minute)
		t.Logf("%d: the checkpoint took %s, the restore until the smoke test was green %s", i, saving.Round(time.Millisecond), took.Round(100*time.Millisecond))
		if err := lab.Forget(t.Context(), s.cache, walkLab, name); err != nil {
			t.Fatal(err)
		}
	}
}

// comesBack returns when the cluster works that a checkpoint has: for it, a loss of
// power on every host.
func (s *walkSite) comesBack(t testing.TB, checkpoint string) {
	t.Helper()
	if _, err := os.Stat(s.kubeconfig()); err != nil {
		return // none yet
	}
	began := time.Now()
	first := s.masters[0]
	// A node stays Ready in the store that was: its lease reports whether its kubelet lives.
	since := s.on(t, first, "date -u +%Y-%m-%dT%H:%M:%SZ")
	s.within(t, 5*time.Minute, first, atHome+fmt.Sprintf(`export KUBECONFIG=/etc/kubernetes/admin.conf
test "$(kubectl --request-timeout=10s -n kube-node-lease get leases -o jsonpath='{range .items[*]}{.spec.renewTime}{"\n"}{end}' | awk '$1 > "%s"' | wc -l)" = %d &&
kubectl --request-timeout=10s wait --for=condition=Ready nodes --all --timeout=60s && kubectl --request-timeout=10s wait --for=condition=Ready pods --all -A --timeout=60s`, since, len(s.Hosts)-1))
	s.smoke(t)
	t.Logf("the cluster of checkpoint %s works again after %s", checkpoint, time.Since(began).Round(100*time.Millisecond))
}
