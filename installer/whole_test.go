package installer_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/crypto/bcrypt"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubernetes"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/registryd/registrydtest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// site is all that a run meets, in memory: hosts, the cluster that kubeadm makes
// on them, the registry that systemd starts on one, and a bundle.
type site struct {
	t       *testing.T
	cluster *manifest.Cluster
	kube    *steptest.Kube
	sims    map[string]*conntest.Sim
	bundle  *shelf
	reg     *registrydtest.Registry
	outside *outside // where the registry stands already
	workdir string
	atOnce  int                                   // how many steps run at once; 8 where it is 0
	log     *audit.Log                            // nil: nothing is on record
	debug   *slog.Logger                          // nil: nothing is logged
	secrets []string                              // beside "secret"
	answer  func(connector.Cmd) *connector.Result // in the place of a host; nil: it does
	events  []engine.Event
	saying  sync.Mutex
	said    []string
}

// newSite gives the site of a config in testdata/clusters.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "testdata", "clusters", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return siteOf(t, string(a.Files[0].Data), name)
}

// siteOf gives the site of a config; name says which of testdata/clusters it is.
func siteOf(t *testing.T, config, name string) *site {
	t.Helper()
	s := &site{t: t, cluster: steptest.Cluster(t, config), sims: map[string]*conntest.Sim{}, workdir: t.TempDir()}
	s.kube = steptest.NewKube(s.cluster)
	s.kube.Disturbs = true
	for i, h := range s.cluster.Spec.Hosts {
		sim := conntest.New(t)
		sim.SetHostname(h.Name)
		sim.SetMachine(func(m *conntest.Machine) {
			m.Machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[h.Arch]
			m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", (11+i)%255)}
			if name == "packages" && h.Arch == "arm64" { // a site of two distributions
				m.Packages, m.OSRelease = "dnf", "ID=\"rocky\"\nVERSION_ID=\"9.4\"\n"
			}
		})
		s.kube.On(sim, h.Name)
		s.sims[h.Name] = sim
	}
	s.bundle = newShelf(t, s.graph(pipeline.Create, nil))
	s.bundle.Repositories = map[string]steptest.Repository{}
	for system, format := range map[string]string{"debian-12": manifest.Deb, "rocky-9.4": manifest.RPM} {
		s.bundle.Repositories[system] = steptest.Repository{Format: format, Want: []string{"ipvsadm", "socat"}, Packages: []steptest.Package{
			{Name: "ipvsadm", Version: "1.31", Depends: []string{"libnl"}}, {Name: "libnl", Version: "3.7"}, {Name: "socat", Version: "1.7"},
		}}
	}
	if registryd.Stands(s.cluster) {
		s.outside = newOutside(t, s)
		s.kube.Holds = s.outside.holds
		return s
	}
	s.reg = registrydtest.Start(s.cluster, s.sims[s.cluster.HostsWith(manifest.RoleRegistry)[0].Name], nil)
	t.Cleanup(s.reg.Stop)
	s.kube.Holds = s.reg.Holds
	s.cheapPasswords()
	return s
}

// cheapPasswords gives the registry's host a password file that answers for the
// passwords of this cluster, and takes a moment to check: a run that writes its
// own spends most of its time on that.
func (s *site) cheapPasswords() {
	s.t.Helper()
	text := ""
	a := registryd.Access{Dir: filepath.Join(s.workdir, "certs", "registry")}
	for _, user := range []string{registryd.PushUser, registryd.PullUser} {
		p, err := a.Password(user)
		if err != nil {
			s.t.Fatal(err)
		}
		hash, err := bcrypt.GenerateFromPassword([]byte(p), bcrypt.MinCost)
		if err != nil {
			s.t.Fatal(err)
		}
		text += user + ":" + string(hash) + "\n"
	}
	s.reg.Sim.AddDir("/etc/kubexm/registry", 0o700)
	s.reg.Sim.AddFile("/etc/kubexm/registry/htpasswd", text, 0o600)
}

type pipe = func(pipeline.Context) plan.Pipeline

func (s *site) graph(p pipe, change func(*plan.Node)) *plan.Graph {
	s.t.Helper()
	g, err := plan.Build(p(pipeline.Context{Say: s.say, Applied: func(*steps.Host) kubernetes.Applied {
		return kubernetes.Applied{Config: []byte("kind: Cluster\n"), Lock: []byte("kind: Lock\n"), Serial: "1"}
	}}), plan.Scope{Cluster: s.cluster, Set: s.cluster.Spec.Kubernetes.Version})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if change != nil {
			change(n)
		}
	}
	return g
}

// say hears of warnings.
func (s *site) say(f steps.Finding) {
	s.saying.Lock()
	defer s.saying.Unlock()
	s.said = append(s.said, f.What)
}

// run carries out a pipeline as a new run of kubexm: it asks every host what it
// is, and knows nothing of a run before.
func (s *site) run(p pipe, change func(*plan.Node)) error {
	s.t.Helper()
	s.events = nil
	hosts := map[string]*steps.Host{}
	for _, h := range s.cluster.Spec.Hosts {
		red := connector.NewRedactor(append([]string{"secret"}, s.secrets...)...)
		log := cmp.Or(s.debug, slog.New(slog.DiscardHandler))
		var conn connector.Conn = &wire{Sim: s.sims[h.Name], site: s}
		if s.log != nil {
			conn = audit.Wrap(conn, h.Name, s.log, red)
		}
		r := runner.New(conn, runner.Options{Redactor: red, Log: log})
		facts, err := r.Facts(s.t.Context())
		if err != nil {
			return err
		}
		hosts[h.Name] = &steps.Host{Host: h, Runner: r, Platform: plan.PlatformOf(h), Cluster: s.cluster, Facts: facts,
			Workdir: s.workdir, Log: log, Artifacts: s.bundle, Direct: s.outside.direct}
	}
	if s.graph(p, nil).Name == "create" {
		if err := installer.Recall(s.t.Context(), s.cluster, func(h manifest.Host) *steps.Host { return hosts[h.Name] }); err != nil {
			return err
		}
	}
	atOnce := cmp.Or(s.atOnce, 8)
	e := &engine.Engine{Commands: atOnce, Uploads: atOnce / 2, Host: func(h manifest.Host) *steps.Host { return hosts[h.Name] },
		Report: func(e engine.Event) { s.events = append(s.events, e) }}
	return e.Run(s.t.Context(), s.graph(p, change))
}

// must is a run that ends well.
func (s *site) must(p pipe, when string) {
	s.t.Helper()
	if err := s.run(p, nil); err != nil {
		s.t.Fatalf("%s: %v", when, err)
	}
}

// state is all hosts as they are. What differs from one making of a cluster to
// the next is left out of them: salted hashes.
func (s *site) state(records bool) conntest.Snapshot {
	var out conntest.Snapshot
	for _, h := range s.cluster.Spec.Hosts {
		for _, l := range s.sims[h.Name].Snapshot() {
			switch {
			case strings.HasPrefix(l, "file /var/lib/kubexm") && !records:
				continue
			case strings.HasPrefix(l, "file /etc/kubexm/registry/htpasswd ") && !records:
				l = strings.Join(strings.Fields(l)[:4], " ")
			}
			out = append(out, h.Name+": "+l)
		}
	}
	return out
}

func (s *site) same(law string, want, got conntest.Snapshot) {
	s.t.Helper()
	if d := conntest.Diff(want, got); d != "" {
		s.t.Errorf("%s:\n%s", law, d)
	}
}

// wire is the connection to a host: what goes through it to the registry's port
// arrives where the registry listens.
type wire struct {
	*conntest.Sim
	site *site
}

// Exec shows the command to who wants to see it, and to answer in the host's place.
func (w *wire) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if w.site.answer != nil {
		if r := w.site.answer(c); r != nil {
			return *r, nil
		}
	}
	return w.Sim.Exec(ctx, c)
}

func (w *wire) Dial(_ context.Context, _, address string) (net.Conn, error) {
	if w.site.outside != nil {
		return w.site.outside.dial(address)
	}
	return w.site.reg.Dial(w.Sim, address)
}

func (*wire) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, errors.New("nobody listens here")
}

// shelf is a bundle with every file that a plan asks for, and an image for each name.
type shelf struct {
	steptest.Artifacts
	blobs map[string][]byte
	trees map[string][]v1.Descriptor
	pins  []manifest.ImagePin
}

func newShelf(t *testing.T, g *plan.Graph) *shelf {
	t.Helper()
	flannel, err := os.ReadFile(filepath.Join("..", "steps", "network", "testdata", "upstream.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{Artifacts: steptest.Artifacts{
		Versions: map[string]string{"containerd/containerd": "2.1.0"},
		Text: map[string]string{"flannel": string(flannel),
			"metallb":    "{apiVersion: v1, kind: Namespace, metadata: {name: metallb-system}}\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: speaker, namespace: metallb-system}}\n",
			"site-tools": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: tools}, spec: {replicas: 2}}\n"},
	}, blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}
	seen := map[string]bool{}
	for _, n := range g.Nodes {
		for _, need := range n.Step.Meta().Needs {
			if need.Kind != manifest.Image || strings.HasSuffix(need.Name, "/*") || seen[need.Name] {
				continue
			}
			seen[need.Name] = true
			im, err := s.Image(need)
			if err != nil {
				t.Fatal(err)
			}
			layer := s.put(t, v1.MediaTypeImageLayerGzip, []byte("layer of "+im.Reference))
			config := s.put(t, v1.MediaTypeImageConfig, map[string]string{"os": "linux", "ref": im.Reference})
			m := s.put(t, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
			s.trees[im.Reference] = []v1.Descriptor{config, layer, m}
			im.MediaType, im.Digest, im.Size = m.MediaType, m.Digest.String(), m.Size
			s.pins = append(s.pins, im)
		}
	}
	return s
}

func (s *shelf) put(t *testing.T, mediaType string, v any) v1.Descriptor {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s.blobs[d.Digest.String()] = b
	return d
}

func (s *shelf) Image(n manifest.Need) (manifest.ImagePin, error) {
	if strings.Contains(n.Name, ":") { // the config's own: its name is its reference
		return manifest.ImagePin{Names: []string{n.Name}, Reference: n.Name}, nil
	}
	return s.Artifacts.Image(n)
}

func (s *shelf) Images() []manifest.ImagePin { return s.pins }

func (s *shelf) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	return s.trees[im.Reference], nil
}

func (s *shelf) Blob(d string) (io.ReadCloser, int64, error) {
	b, ok := s.blobs[d]
	if !ok {
		return nil, 0, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}
