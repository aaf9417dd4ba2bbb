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

// Case is what a law is tried on.
type Case struct {
	// Cluster is a small one where it is nil.
	Cluster *manifest.Cluster
	// Host is the cluster's first one where it has no name.
	Host manifest.Host
	// Before puts on the host what was there before kubexm came.
	Before func(*conntest.Sim)
	// Stands changes the cluster that Waits is tried on; nil: it is as kubeadm makes it.
	Stands func(*Kube)
	// Artifacts holds everything where it is nil.
	Artifacts steps.Artifacts
	// Applied is what the run applies.
	Applied steps.Applied
	// Report hears of findings that let the step pass; nil: nobody does.
	Report func(steps.Finding)
	// Workdir is the cluster's folder; a new one where it is empty.
	Workdir string
	// Varies are files whose content differs from host to host: hashes with salt.
	Varies []string
	// Unseen are parts of the names of files that a look at what differs does not miss: of
	// objects that Helm looks after.
	Unseen []string
	// Every tries the break of the wire at every n-th command only: for steps whose
	// commands take long to work out. A short run tries every third of these places.
	Every int
}

// Small is a config of one host that is everything.
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

// Sim gives a host as it was before kubexm came.
func (c Case) Sim(t conntest.TB) *conntest.Sim {
	s := conntest.New(t)
	if c.Before != nil {
		c.Before(s)
	}
	return s
}

// On gives a facade of the host for one step, as a new run of kubexm makes it:
// nothing of an earlier run is in it.
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

// NewHost is On with the defaults of a Case filled in, for tests of a single step.
func (c Case) NewHost(t testing.TB, s *conntest.Sim, step steps.Step) *steps.Host {
	t.Helper()
	return c.complete(t).On(t, s, step)
}

// settled is a snapshot without the records and with the content of files that
// vary left out: what two runs of one step have to agree on.
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
