package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/inventory"
)

// A cut ends kubexm, or takes a host's power, some time after a step has begun.
type cut struct {
	step  string
	host  string // any host if empty
	after time.Duration
	power bool // of host, instead of kubexm
}

// killedOperation is an operation on a cluster that exists, and what interrupts it, in order.
type killedOperation struct {
	what string
	// roles replaces roles of the config, without lists the hosts that it does not have.
	roles   map[string]string
	without []string
	args    []string
	bundle  bool
	cuts    []cut
	done    string // what the run says that nothing interrupts
	nodes   []string
	members []string
	left    []string // hosts that are as they were before the cluster
}

func killedOperations() []killedOperation {
	two, three, five := []string{"h1", "h2"}, []string{"h2", "h3", "h4"}, []string{"h2", "h3", "h4", "h5", "h6"}
	worker := map[string]string{"worker": "h1, h2, h5"}
	members := map[string]string{"etcd": "h2, h3, h4, h5, h6"}
	master := map[string]string{"master": "h1, h2, h6"}
	none := []string{"h5", "h6"}
	return []killedOperation{
		{what: "a worker joins", roles: worker, without: []string{"h6"}, args: []string{"node", "add"}, bundle: true, done: "node-add of cluster site: done",
			cuts: []cut{
				{step: "kubeadm.join-worker", host: "h5", after: time.Second},
				{step: "kubeadm.join-worker", host: "h5", after: 2 * time.Second, power: true},
				{step: "kubernetes.record-applied"},
			}, nodes: []string{"h1", "h2", "h5"}, members: three},
		{what: "a worker leaves", roles: worker, without: []string{"h6"}, args: []string{"node", "delete", "h5", "--yes"}, done: "node-delete of cluster site: done",
			cuts: []cut{
				{step: "kubernetes.drain-node", after: time.Second},
				{step: "kubeadm.reset-worker", host: "h5", after: 500 * time.Millisecond, power: true},
				{step: "kubernetes.delete-node"},
			}, nodes: two, members: three, left: []string{"h5"}},
		{what: "two members join", roles: members, args: []string{"etcd", "add"}, bundle: true, done: "add-etcd-member of cluster site: done",
			cuts: []cut{
				{step: "etcd.install", host: "h5", after: 500 * time.Millisecond},
				{step: "etcd.wait-healthy", host: "h6"},
				{step: "kubeadm.update-etcd-servers", host: "h2", after: time.Second},
			}, nodes: two, members: five},
		{what: "two members leave", roles: members, args: []string{"etcd", "remove", "h5", "h6", "--yes"}, done: "remove-etcd-member of cluster site: done",
			cuts: []cut{
				{step: "etcd.remove-member", after: 200 * time.Millisecond},
				{step: "etcd.uninstall"},
			}, nodes: two, members: three, left: none},
		{what: "a master joins", roles: master, without: []string{"h5"}, args: []string{"node", "add"}, bundle: true, done: "node-add of cluster site: done",
			cuts: []cut{
				{step: "kubeadm.update-config"},
				{step: "kubeadm.join-master", host: "h6", after: 5 * time.Second},
			}, nodes: []string{"h1", "h2", "h6"}, members: three},
		{what: "everything restarts", roles: master, without: []string{"h5"}, args: []string{"restart", "all", "--yes"}, done: "done",
			cuts: []cut{
				{step: "etcd.restart", host: "h3", after: 200 * time.Millisecond},
				{step: "containerd.restart", host: "h2", after: 200 * time.Millisecond},
			}, nodes: []string{"h1", "h2", "h6"}, members: three},
		{what: "a master leaves", roles: master, without: []string{"h5"}, args: []string{"node", "delete", "h6", "--yes"}, done: "node-delete of cluster site: done",
			cuts: []cut{
				{step: "kubeadm.stop-api-server", host: "h6", after: 200 * time.Millisecond},
				{step: "kubeadm.reset-master", host: "h6", after: time.Second},
			}, nodes: two, members: three, left: none},
	}
}

// TestOperationsAreKilled: kubexm is killed while hosts join and leave, members of etcd do, and
// everything restarts; hosts lose their power meanwhile. The same command ends what was begun.
func TestOperationsAreKilled(t *testing.T) {
	if os.Getenv("KUBEXM_KILLED") == "" {
		t.Skip("KUBEXM_KILLED=1 runs it")
	}
	text, err := os.ReadFile("testdata/killed-operations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newSiteOf(t, 6, string(text))
	s.masters = []string{"h1", "h2"}
	before := s.inventories(t)
	config := s.listing(t, "h5", "h6")
	said(t, s.install(t, config), 0, "create of cluster site: done")
	s.smoke(t)
	kills := 0
	for _, o := range killedOperations() {
		if !t.Run(o.what, func(t *testing.T) { kills += s.killed(t, o, before) }) {
			t.FailNow() // what follows would stand on it
		}
	}
	if t.Logf("%d kills, each before the operation's end", kills); kills < 10 {
		t.Error("fewer than 10: the test proves little")
	}
	s.smoke(t)
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}

// killed interrupts an operation as often as it says, and ends it. It returns how often kubexm was
// killed.
func (s *labSite) killed(t *testing.T, o killedOperation, before map[string]inventory.Inventory) int {
	t.Helper()
	config := s.withRoles(t, o)
	args := append(o.args[:len(o.args):len(o.args)], "-f", config)
	if o.bundle {
		args = append(args, "--bundle", s.bundle, "--allow-unsigned")
	}
	kills, ended := 0, false
	for _, c := range o.cuts {
		r := s.cutOff(t, c, args...)
		if r.code < 0 {
			kills++
		}
		if ended = r.code == 0; ended { // it outlasted the loss of power, or had nothing left to do there
			break
		}
	}
	if !ended {
		r := s.kubexm(t, args...)
		said(t, r, 0, o.done)
		t.Logf("ended in %s", r.took.Round(time.Second))
	}
	s.nodesAre(t, o.nodes...)
	said(t, s.kubexm(t, "etcd", "status", "-f", config), 0, o.members...)
	for _, h := range o.left {
		s.hostAsBefore(t, before, h)
	}
	if len(o.left) > 0 {
		config = s.listing(t, "h5", "h6")
	}
	s.settled(t, config)
	return kills
}

// cutOff runs an operation until something interrupts it.
func (s *labSite) cutOff(t *testing.T, c cut, args ...string) result {
	t.Helper()
	began, cuts := false, make(chan struct{})
	r := s.watched(t, func(e told, kill func()) {
		if began || e.Outcome != "started" || e.Step != c.step || c.host != "" && e.Host != c.host {
			return
		}
		began = true
		go func() {
			defer close(cuts)
			time.Sleep(c.after)
			if c.power {
				s.power(t, c.host)
				return
			}
			kill()
		}()
	}, args...)
	if !began && r.code != 0 {
		t.Fatalf("%s never began: exit %d\n%s", c.step, r.code, r.stderr)
	}
	if began {
		<-cuts
	}
	switch {
	case !began: // a job on the host went on, and did it
		t.Logf("%s was done already", c.step)
	case c.power:
		t.Logf("%s lost its power at %s: exit %d after %s", c.host, c.step, r.code, r.took.Round(time.Second))
		if r.code > 0 && !strings.Contains(r.stderr, "run the same command again") {
			t.Errorf("it does not say how to go on\n%s", r.stderr)
		}
	case r.code >= 0:
		t.Errorf("%s + %s: the run ended by itself, exit %d\n%s", c.step, c.after, r.code, r.stderr)
	default:
		t.Logf("killed at %s + %s", c.step, c.after)
	}
	return r
}

// withRoles writes the config with the roles and hosts of an operation.
func (s *labSite) withRoles(t *testing.T, o killedOperation) string {
	t.Helper()
	whole := s.config
	defer func() { s.config = whole }()
	for role, hosts := range o.roles {
		at := strings.Index(s.config, "\n    "+role+": [")
		if at < 0 {
			t.Fatalf("no role %s in the config", role)
		}
		line := s.config[at+1 : at+1+strings.IndexByte(s.config[at+1:], '\n')]
		s.config = strings.Replace(s.config, line, "    "+role+": ["+hosts+"]", 1)
	}
	return s.listing(t, o.without...)
}
