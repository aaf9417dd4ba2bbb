package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd/registrydtest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// clusterSite is a site to install on: simulated hosts behind SSH servers, the cluster
// that kubeadm makes on them, the registry that systemd starts on one. It lives in
// this process, and outlives every kubexm that works on it.
type clusterSite struct {
	*site
	cluster *manifest.Cluster
	kube    *steptest.Kube
	hosts   map[string]*host
	names   []string
	reg     *registrydtest.Registry
	bundle  string
	workdir string
	before  conntest.Snapshot
	silent  time.Duration // the longest that a connection was, until kubexm gave it up

	mu    sync.Mutex
	wrong []string // what must never happen, and did
	going bool     // somebody wants the cluster gone
	parts []string // of kubeadm's work, as they began
	pause time.Duration
	part  func(host, part string) // told of each; may be nil
}

// siteConfig is the cluster of the rows: as few hosts as have all roles apart.
const siteConfig = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  ssh: {user: root, password: ` + loginPassword + `, hostKeyPolicy: accept-new}
  hosts:
%s  roleGroups: {registry: [r1], master: [m1], worker: [w1]}
  kubernetes: {version: %s}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
  bundle: {platforms: [linux/amd64]}
`

// siteHosts are its hosts. Their addresses in the cluster are nobody's.
var siteHosts = []string{"r1", "m1", "w1"}

// clusterSite makes a site whose hosts are as their distribution made them.
func (l *lab) clusterSite(ctx context.Context, name string) (*clusterSite, error) {
	archive, version, err := l.installable(ctx)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(l.dir, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(name))
	g := &clusterSite{
		site: &site{lab: l, root: root}, hosts: map[string]*host{}, names: siteHosts, bundle: archive,
		workdir: filepath.Join(root, "work"), pause: 15 * time.Millisecond,
	}
	if err := os.MkdirAll(g.workdir, 0o750); err != nil {
		return nil, err
	}
	var lines strings.Builder
	sims := map[string]*conntest.Sim{}
	for i, n := range siteHosts {
		sim := conntest.New(nil)
		sim.SetHostname(n)
		sim.KeepDisk(steptest.ImageDir, "/var/lib/etcd", "/var/lib/registry", "/run")
		sim.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", 10+i)} })
		sims[n] = sim
		h, err := newHost(n, fmt.Sprintf("127.0.77.%d:0", 10+i), sim) //nolint:contextcheck // it outlasts who asks for it
		if err != nil {
			g.close()
			return nil, err
		}
		g.hosts[n] = h
		fmt.Fprintf(&lines, "    - {name: %s, address: 127.0.77.%d, port: %d, internalAddress: 192.0.2.%d}\n", n, 10+i, h.wire.port(), 10+i)
	}
	text := fmt.Sprintf(siteConfig, lines.String(), version)
	var problems manifest.Problems
	if g.cluster, problems = manifest.Decode(strings.NewReader(text)); problems.Err() != nil {
		g.close()
		return nil, problems.Err()
	}
	if err := os.WriteFile(g.config(), []byte(text), 0o600); err != nil {
		g.close()
		return nil, err
	}
	g.kube = steptest.NewKube(g.cluster)
	g.kube.BeforePhase = g.between
	for n, sim := range sims {
		g.kube.On(sim, n)
		g.watchKubeadm(n, sim)
	}
	g.reg = registrydtest.Start(g.cluster, sims["r1"], func() http.Handler {
		return &faultyRegistry{inner: ggcr.New(ggcr.Logger(silent())), count: map[string]int{}, kept: map[string]document{}, fine: true}
	})
	g.kube.Holds = g.reg.Holds
	for n, h := range g.hosts {
		h.dial = func(address string) (net.Conn, error) { return g.reg.Dial(sims[n], address) }
	}
	g.before = g.state()
	return g, nil
}

func (g *clusterSite) config() string { return filepath.Join(g.root, "config.yaml") }

func (g *clusterSite) close() {
	for _, h := range g.hosts {
		h.close()
	}
	if g.reg != nil {
		g.reg.Stop()
	}
	_ = os.RemoveAll(g.root) // the lab's folder goes as a whole in the end
}

// rewrite adds a word about Kubernetes to the config.
func (g *clusterSite) rewrite(more string) error {
	text, err := os.ReadFile(g.config())
	if err != nil {
		return err
	}
	return os.WriteFile(g.config(), []byte(strings.Replace(string(text), "kubernetes: {", "kubernetes: {"+more+", ", 1)), 0o600)
}

// between lets each part of kubeadm's work take a while, and ends it with its job.
func (g *clusterSite) between(host, part string) bool {
	g.mu.Lock()
	g.parts = append(g.parts, host+" "+part)
	told, pause := g.part, g.pause
	g.mu.Unlock()
	if told != nil {
		told(host, part)
	}
	time.Sleep(pause)
	return g.hosts[host].living("kubeadm")
}

// watchKubeadm notes what kubeadm must never be told: to make or unmake a control
// plane that was whole, while nobody wants the cluster gone.
func (g *clusterSite) watchKubeadm(name string, sim *conntest.Sim) {
	sim.HandleProgram("kubeadm", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		remakes := len(c.Argv) > 1 && (c.Argv[1] == "reset" || c.Argv[1] == "init" && !slices.Contains(c.Argv, "phase"))
		if remakes && g.whole(name) && !g.deleting() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.wrong = append(g.wrong, fmt.Sprintf("kubeadm %s ON A CONTROL PLANE THAT WAS WHOLE, on %s", c.Argv[1], name))
		}
		return connector.Result{}, false
	})
}

// whole reports whether a host is a control plane whose last phase was carried out.
func (g *clusterSite) whole(name string) bool {
	sim := g.hosts[name].sim
	return name == "m1" && sim.Read("/etc/kubernetes/manifests/kube-apiserver.yaml") != "" && sim.Read("/etc/kubernetes/admin.conf") != "" &&
		sim.Read("/etc/kubernetes/pki/ca.key") != "" && g.kube.Object("apps/v1", "DaemonSet", "kube-system", "kube-proxy") != nil
}

func (g *clusterSite) deleting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.going
}

// install and destroy are the commands that the rows interrupt.
func (g *clusterSite) install(more ...string) []string {
	return append([]string{"install", "--allow-unsigned", "--bundle", g.bundle, "-f", g.config(), "--workdir", g.workdir}, more...)
}

func (g *clusterSite) destroy(more ...string) []string {
	g.mu.Lock()
	g.going = true
	g.mu.Unlock()
	return append([]string{"delete", "cluster", "-f", g.config(), "--workdir", g.workdir, "--yes"}, more...)
}

// again runs a command to its end, as a person does after an interruption.
func (g *clusterSite) again(ctx context.Context, args []string) error {
	for _, h := range g.hosts {
		if err := h.quiet(ctx); err != nil {
			return err
		}
	}
	if _, err := g.audited(ctx); err != nil {
		return fmt.Errorf("before it is run again: %w", err)
	}
	if r := g.run(ctx, args...); r.code != 0 {
		return fmt.Errorf("run again: exit %d: %s", r.code, clip(r.stderr, 1500))
	}
	if _, err := g.audited(ctx); err != nil {
		return fmt.Errorf("run again: %w", err)
	}
	return g.sound()
}

// sound says what must never be, whatever was interrupted.
func (g *clusterSite) sound() error {
	g.mu.Lock()
	wrong := slices.Clone(g.wrong)
	g.mu.Unlock()
	for _, n := range g.names {
		for _, u := range g.hosts[n].said() {
			wrong = append(wrong, n+": "+u)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// leftovers says which files with a temporary name are left, on the hosts and in
// the workdir.
func (g *clusterSite) leftovers() error {
	var left []string
	for _, n := range g.names {
		for _, p := range g.hosts[n].sim.Below("") {
			if strings.HasSuffix(p, ".kubexm-new") {
				left = append(left, n+":"+p)
			}
		}
	}
	err := filepath.WalkDir(g.workdir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && temporary(d.Name()) {
			left = append(left, p)
		}
		return err
	})
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("HALF WRITTEN FILES are left: %s", strings.Join(left, ", ")))
	}
	return err
}

func temporary(name string) bool {
	return name != ".lock" && strings.HasPrefix(name, ".") || strings.Contains(name, "tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~")
}

// state is all hosts as they are.
func (g *clusterSite) state() conntest.Snapshot {
	var out conntest.Snapshot
	for _, n := range g.names {
		for _, l := range g.hosts[n].sim.Snapshot() {
			out = append(out, n+": "+l)
		}
	}
	return out
}

// made compares the hosts with those of an installation that nothing disturbed.
func (g *clusterSite) made(ctx context.Context) error {
	m, err := g.model(ctx)
	if err != nil {
		return err
	}
	return errors.Join(differ("OTHER THAN UNDISTURBED", m.settled(m.state), m.settled(g.state())), g.leftovers(), g.filed(m), g.sound())
}

// gone compares the hosts with what they were before kubexm came.
func (g *clusterSite) gone() error {
	return errors.Join(differ("OTHER THAN BEFORE KUBEXM CAME", g.before, g.state()), g.leftovers(), g.sound())
}

func differ(what string, want, got conntest.Snapshot) error {
	if d := conntest.Diff(want, got); d != "" {
		return fmt.Errorf("%s: %s", what, clip(d, 1500))
	}
	return nil
}

// filed compares the names in the workdir.
func (g *clusterSite) filed(m *model) error {
	got, err := filesIn(g.workdir)
	if err != nil {
		return err
	}
	for name, size := range m.files {
		if is, ok := got[name]; !ok {
			return fmt.Errorf("THE WORKDIR LACKS %s", name)
		} else if size > 0 && is == 0 {
			return fmt.Errorf("%s IN THE WORKDIR IS EMPTY", name)
		}
	}
	return nil
}

// filesIn gives the sizes of files below a folder, without what each run adds.
func filesIn(dir string) (map[string]int64, error) {
	out := map[string]int64{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, p) // it is below
		info, err := d.Info()
		if err == nil && !strings.Contains(name, "/runs/") && !strings.Contains(name, "/receipts/") {
			out[name] = info.Size()
		}
		return err
	})
	return out, err
}
