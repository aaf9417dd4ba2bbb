package e2e

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/lab/drivers"
	"github.com/mensylisir/kubexm/testdata/lab/inventory"
)

// TestNodes is the life of a cluster whose hosts join and leave while clients are at work: a
// worker, a further master, the first master, and a master whose machine is off.
func TestNodes(t *testing.T) {
	if os.Getenv("KUBEXM_NODES") == "" {
		t.Skip("KUBEXM_NODES=1 runs it")
	}
	text, err := os.ReadFile("testdata/nodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newSiteOf(t, 6, string(text))
	s.masters = []string{"h1", "h2", "h3"}
	before := s.inventories(t)

	said(t, s.install(t, s.listing(t, "h5", "h6")), 0, "create of cluster site: done")
	s.smoke(t)
	// kubeadm joins a master without its taint, and adds it a moment later. A pod of a DaemonSet that
	// came in between stays there, or waits for the node; this one has to leave it again.
	s.kubectl(t, "patch", "daemonset", "smoke", "--patch", `{"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {
		"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
			{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]}]}}}}}}}`)
	limits := map[string]drivers.Limit{}
	d := s.drives(t, "h4", func(c *drivers.Config) {
		c.Addresses = append(c.Addresses, net.JoinHostPort(s.address(t, "h6"), "6443"))
		c.Nodes = []string{s.address(t, "h4")}
	})
	phase := func(name string, limit drivers.Limit) {
		t.Helper()
		limits[name] = limit
		d.Mark(name)
	}
	const some = drivers.Unlimited
	quiet := drivers.Limit{Gap: time.Second, Watch: 5 * time.Second}
	// Without a load balancer nobody asks whether a server is ready before it is sent requests.
	busy := drivers.Limit{Gap: 2 * time.Second, Watch: 5 * time.Second, Failed: some, NewFailed: some}
	// A lost master may have had etcd's leader: no write succeeds until there is another one.
	lost := drivers.Limit{Gap: 2 * electionTimeout, Watch: 10 * time.Second, Failed: some, NewFailed: some}
	time.Sleep(20 * time.Second) // the baseline

	add := func(config string, more ...string) result {
		t.Helper()
		return s.kubexm(t, append([]string{"node", "add", "--bundle", s.bundle, "--allow-unsigned", "-f", config}, more...)...)
	}
	withWorker := s.listing(t, "h6")
	phase("a worker joins", quiet)
	said(t, add(withWorker), 0, "node-add of cluster site: done")
	said(t, add(withWorker, "h5"), 0, "0 steps ran")
	s.nodesAre(t, "h1", "h2", "h3", "h4", "h5")
	phase("a worker leaves", quiet)
	said(t, s.kubexm(t, "node", "delete", "h5", "-f", withWorker, "--yes", "--write"), 0, "node-delete of cluster site: done", "without h5")
	s.nodesAre(t, "h1", "h2", "h3", "h4")
	s.hostAsBefore(t, before, "h5")
	s.settled(t, withWorker)

	phase("the first master leaves", busy)
	said(t, s.kubexm(t, "node", "delete", "h1", "-f", withWorker, "--yes", "--write"), 0, "node-delete of cluster site: done")
	s.masters = []string{"h2", "h3"}
	s.nodesAre(t, "h2", "h3", "h4")
	s.hostAsBefore(t, before, "h1")
	s.settled(t, withWorker)

	phase("a master joins", busy)
	threeAgain := s.listing(t, "h1", "h5")
	said(t, add(threeAgain), 0, "node-add of cluster site: done")
	s.masters = []string{"h2", "h3", "h6"}
	s.nodesAre(t, "h2", "h3", "h4", "h6")
	said(t, s.kubexm(t, "etcd", "status", "-f", threeAgain), 0, "h2", "h3", "h6")

	phase("a master loses power", lost)
	off, err := s.Host("h3")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(off); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * electionTimeout)
	said(t, s.kubexm(t, "node", "delete", "h3", "-f", threeAgain, "--yes"), 3, "or, if h3 will never answer again, add --dead")
	phase("it is deleted", busy)
	said(t, s.kubexm(t, "node", "delete", "h3", "-f", threeAgain, "--dead", "--yes", "--write"), 0, "node-delete of cluster site: done", "h3", "without h3")
	s.masters = []string{"h2", "h6"}
	s.nodesAre(t, "h2", "h4", "h6")
	said(t, s.kubexm(t, "etcd", "status", "-f", threeAgain), 0, "h2", "h6")

	phase("it returns, and joins again", busy)
	if err := s.Boot(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	last := s.listing(t, "h1", "h5")
	last = s.write(t, "last.yaml", strings.Replace(readText(t, last), "master: [h2, h3, h6]", "master: [h2, h6, h3]", 1))
	said(t, add(last), 0, "node-add of cluster site: done", "cleaned: h3")
	s.masters = []string{"h2", "h6", "h3"}
	s.nodesAre(t, "h2", "h3", "h4", "h6")

	report, err := d.Stop(t.Context())
	if err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", report)
	for name, limit := range limits {
		if err := report.Check(name, limit); err != nil {
			t.Error(err)
		}
	}
	s.smokeOnOne(t) // h4 is the only worker
	s.settled(t, last)
	said(t, s.kubexm(t, "delete", "cluster", "-f", last, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}

// settled installs again after hosts have left. The hosts of a lab share one kernel, whose settings a
// leaving host restored, and which master the kubeconfig names depends on who answered first
// meanwhile: nothing else has to be done, and the next time nothing at all.
func (s *labSite) settled(t testing.TB, config string) {
	t.Helper()
	r := s.install(t, config)
	said(t, r, 0, "create of cluster site: done")
	if strings.Contains(r.stdout, " 0 steps ran") {
		return
	}
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, "  ran  ") && !strings.Contains(line, "/node.configure-kernel ") && !strings.Contains(line, "/kubernetes.fetch-kubeconfig") {
			t.Errorf("an install after hosts have left: %s", line)
		}
	}
	said(t, s.install(t, config), 0, " 0 steps ran")
}

// listing writes the config without some hosts.
func (s *labSite) listing(t testing.TB, without ...string) string {
	t.Helper()
	text, err := manifest.RemoveHosts([]byte(s.config), without)
	if err != nil {
		t.Fatal(err)
	}
	return s.write(t, "without-"+strings.Join(without, "-")+".yaml", string(text))
}

func readText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nodesAre compares the nodes of the cluster, all of which are Ready.
func (s *labSite) nodesAre(t testing.TB, want ...string) {
	t.Helper()
	out := s.kubectl(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
	var ready []string
	for word := range strings.FieldsSeq(out) {
		ready = append(ready, strings.TrimSuffix(word, "=True"))
	}
	slices.Sort(ready)
	if !slices.Equal(ready, want) {
		t.Errorf("nodes %q, want %q", out, want)
	}
}

// hostAsBefore is asBefore for one host.
func (s *labSite) hostAsBefore(t testing.TB, before map[string]inventory.Inventory, host string) {
	t.Helper()
	without, err := inventory.ReadExclusions()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, d := range inventory.Compare(before[host], s.inventories(t)[host], without) {
		// The hosts of a lab share one kernel, and the others still need these settings.
		if text := d.String(); !strings.Contains(text, "sysctl kernel.panic") && !strings.Contains(text, "sysctl vm.overcommit_memory") {
			left = append(left, text)
		}
	}
	if len(left) > 0 {
		t.Errorf("%s is not what it was, in %d things:\n%s", host, len(left), strings.Join(left, "\n"))
	}
}
