package steptest

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Case is the environment of a conformance test.
type Case struct {
	// Cluster is the config; nil means Small.
	Cluster *manifest.Cluster
	// Host is the host of the step; without a name it is the cluster's first host.
	Host manifest.Host
	// Before sets up the original state of the host.
	Before func(*conntest.Sim)
	// ChangeCluster changes the cluster that Waits runs on; nil means as kubeadm creates it.
	ChangeCluster func(*Kube)
	// Artifacts is the bundle; nil means one that contains everything.
	Artifacts steps.Artifacts
	// Applied is what the run applies.
	Applied steps.Applied
	// Report receives warnings and notes; it may be nil.
	Report func(steps.Finding)
	// Workdir is the cluster's folder; empty means a new one.
	Workdir string
	// Varies are files whose content differs from host to host, such as salted hashes.
	Varies []string
	// Unseen are parts of the names of files whose removal Drift need not detect: objects
	// that Helm manages.
	Unseen []string
	// Every restricts the tests with a broken connection to every n-th command, for steps
	// that are slow in tests. Short runs use every third of these.
	Every int
}

// Small is a config with one host that has all roles.
const Small = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: node1, address: 192.0.2.11}
  ssh: {user: root, password: secret}
  roleGroups:
    master: [node1]
    worker: [node1]
    registry: [node1]
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

// Cluster reads a config. Errors in it end the test.
func Cluster(t testing.TB, config string) *manifest.Cluster {
	t.Helper()
	c, problems := manifest.Decode(strings.NewReader(config))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c Case) complete(t testing.TB) Case {
	t.Helper()
	if c.Cluster == nil {
		c.Cluster = Cluster(t, Small)
	}
	if c.Host.Name == "" {
		c.Host = c.Cluster.Spec.Hosts[0]
	}
	if c.Artifacts == nil {
		c.Artifacts = Artifacts{}
	}
	if c.Workdir == "" {
		c.Workdir = t.TempDir()
	}
	if c.Every == 0 {
		c.Every = 1
	}
	if testing.Short() {
		c.Every *= 3
	}
	return c
}

// Sim returns a host in its original state.
func (c Case) Sim(t conntest.TB) *conntest.Sim {
	s := conntest.New(t)
	if c.Before != nil {
		c.Before(s)
	}
	return s
}

// On returns the steps.Host for one step, as in a new run of kubexm.
func (c Case) On(t testing.TB, s *conntest.Sim, step steps.Step) *steps.Host {
	t.Helper()
	r := runner.New(s, runner.Options{})
	facts, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &steps.Host{
		Host: c.Host, Runner: r, Platform: manifest.Platform{OS: "linux", Arch: c.Host.Arch}, Cluster: c.Cluster, Facts: facts,
		Workdir: c.Workdir, Log: slog.New(slog.DiscardHandler), Artifacts: c.Artifacts, Applied: func() steps.Applied { return c.Applied },
	}
	return h.WithBoard(&steps.Board{}).WithReport(c.Report).ForStep(step.Meta())
}

// NewHost is On with the defaults of a Case, for tests of a single step.
func (c Case) NewHost(t testing.TB, s *conntest.Sim, step steps.Step) *steps.Host {
	t.Helper()
	return c.complete(t).On(t, s, step)
}

// settled returns a snapshot without kubexm's records and without the content of files in
// Varies: the part that must be equal after two runs of a step.
func (c Case) settled(s conntest.Snapshot) conntest.Snapshot {
	var out conntest.Snapshot
	for _, l := range s {
		if strings.HasPrefix(l, "file /var/lib/kubexm") {
			continue
		}
		for _, v := range c.Varies {
			if strings.HasPrefix(l, "file "+v+" ") {
				l = strings.Join(strings.Fields(l)[:4], " ")
			}
		}
		out = append(out, l)
	}
	return out
}
