package installer_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// outside is a registry that stands already: every host reaches it, and this
// machine where open says so.
type outside struct {
	*registrytest.Product
	address string
	mapper  registry.Mapper
	conns   chan net.Conn
	closed  chan struct{}

	mu   sync.Mutex
	open bool
	here int // connections from this machine
}

// newOutside stands where the config says, with a certificate of a CA that the
// config then names.
func newOutside(t *testing.T, s *site) *outside {
	t.Helper()
	o := &outside{Product: registrytest.NewProduct(), address: "192.0.2.99:8443", mapper: registryd.MapperOf(s.cluster), conns: make(chan net.Conn), closed: make(chan struct{})}
	at := s.cluster.Spec.Registry.PrivateRegistry
	login := s.cluster.Spec.Registry.Auths[at]
	o.User, o.Password = login.Username, "canary-of-the-registry"
	store := pki.Store{Dir: t.TempDir()}
	ca, err := store.Authority("ca", "the site's CA", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(at, ":")
	leaf, err := store.Leaf("server", ca, pki.Request{CommonName: name, Names: []string{name}, Server: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := ca.Encode()
	if err != nil {
		t.Fatal(err)
	}
	login.CertsPath = filepath.Join(t.TempDir(), "certs")
	if err := os.MkdirAll(login.CertsPath, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(login.CertsPath, "ca.crt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.cluster.Spec.Registry.Auths[at] = login
	cert, key, err := leaf.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: o, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { // ends with Close
		_ = srv.Serve(tls.NewListener(o, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}))
	}()
	t.Cleanup(func() { _ = srv.Close() })
	return o
}

func (o *outside) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *outside) Close() error {
	select {
	case <-o.closed:
	default:
		close(o.closed)
	}
	return nil
}

func (*outside) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects from a host.
func (o *outside) dial(address string) (net.Conn, error) {
	if address != o.address {
		return nil, &connector.DialError{Addr: address, Err: errors.New("nobody is there: connection refused")}
	}
	here, there := net.Pipe()
	o.conns <- there
	return here, nil
}

// direct connects from this machine.
func (o *outside) direct(_ context.Context, network, address string) (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open {
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError("no route to " + address)}
	}
	o.here++
	return o.dial(address)
}

// holds tells whether it was given an image.
func (o *outside) holds(ref string) bool {
	repository, tag, err := o.mapper.Repository(ref)
	if _, d, ok := strings.Cut(ref, "@"); ok {
		tag = d
	}
	return err == nil && o.Manifest(repository, tag) != ""
}

// gap puts an image into the bundle whose index names a platform that is not
// there, and has the add-on name it by that index's digest.
func (s *site) gap() (published string) {
	s.t.Helper()
	const ref = "quay.example/site/tools:1.0"
	b := s.bundle
	layer := b.put(s.t, v1.MediaTypeImageLayerGzip, []byte("layer of "+ref))
	config := b.put(s.t, v1.MediaTypeImageConfig, map[string]string{"os": "linux", "architecture": "amd64", "ref": ref})
	m := b.put(s.t, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
	index := b.put(s.t, v1.MediaTypeImageIndex, v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{
		m, {MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("another platform"), Size: 5},
	}})
	b.trees[ref] = []v1.Descriptor{config, layer, m, index}
	b.pins = append(b.pins, manifest.ImagePin{Reference: ref, Names: []string{"site-tools/tools"}, MediaType: index.MediaType, Digest: index.Digest.String(), Size: index.Size})
	b.Text["site-tools"] = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: tools}, spec: {replicas: 2, template: {spec: {containers: [{name: tools, image: 'quay.example/site/tools@" +
		index.Digest.String() + "'}]}}}}\n"
	return index.Digest.String()
}

// TestARegistryThatStands: its images are sent with the config's user, the nodes
// pull from it, and a deletion leaves it alone and says so. What an index with gaps
// is there, the add-on names.
func TestARegistryThatStands(t *testing.T) {
	for name, c := range map[string]struct {
		open   bool // this machine reaches it
		sparse int  // its answer to gaps
	}{
		"takes gaps, is reached from here":             {true, 0},
		"refuses gaps, is reached through a host only": {false, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "registry-existing")
				s.outside.open, s.outside.Sparse, s.outside.Code = c.open, c.sparse, "MANIFEST_BLOB_UNKNOWN"
				published := s.gap()
				first := s.state(true)
				s.must(pipeline.Create, "create")
				if through := slices.ContainsFunc(s.said, func(w string) bool { return strings.Contains(w, "go through the SSH connection to m1") }); through == c.open {
					t.Errorf("said %q", s.said)
				}
				if (s.outside.here > 0) != c.open {
					t.Errorf("%d connections from here", s.outside.here)
				}
				has := s.outside.Manifest("kube/quay.example/site/tools", "1.0")
				if (has == published) != (c.sparse == 0) || has == "" {
					t.Errorf("the registry has %s, published was %s", has, published)
				}
				for _, node := range []string{"m1", "w2"} {
					s.nodeFiles(node)
				}
				object := s.kube.Object("apps/v1", "Deployment", "default", "tools")
				if text := s.sims["m1"].Read("/var/lib/etcd/member/Deployment.apps/default/tools"); object == nil || !strings.Contains(text, "quay.example/site/tools@"+has) {
					t.Errorf("the add-on runs %s, and the registry has %s", text, has)
				}
				file := filepath.Join(s.workdir, "registry-digests.json")
				if _, err := os.Stat(file); (err == nil) != (c.sparse != 0) {
					t.Errorf("the digests that are others there: %v", err)
				}

				if s.outside.Begun != 0 {
					t.Errorf("%d uploads were begun and left", s.outside.Begun)
				}
				uploads, made := s.outside.Uploads, s.state(true)
				s.must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 || s.outside.Uploads != uploads {
					t.Errorf("a second creation ran %q, and sent %d blobs", ran, s.outside.Uploads-uploads)
				}
				s.same("a second creation changes nothing", made, s.state(true))

				s.said = nil
				s.cluster.Spec.Registry.Auths = map[string]manifest.RegistryAuth{ // nothing is read again to take it away
					"harbor.site.example:8443": {Username: "robot", Password: manifest.NewSecret("file:nowhere"), CertsPath: "nowhere"}, "other.site.example": {PlainHTTP: true},
				}
				s.must(pipeline.Delete, "delete")
				s.same("a deletion gives back what was there", first, s.state(true))
				if got := s.outside.Manifest("kube/quay.example/site/tools", "1.0"); got != has {
					t.Errorf("after the deletion the registry has %s", got)
				}
				if !slices.ContainsFunc(s.said, func(w string) bool {
					return strings.Contains(w, "images stay in the registry harbor.site.example:8443/kube")
				}) {
					t.Errorf("the deletion said %q", s.said)
				}
				if _, err := os.Stat(file); err == nil {
					t.Error("the digests are left")
				}
			})
		})
	}
}

// nodeFiles looks at what a node pulls with.
func (s *site) nodeFiles(node string) {
	s.t.Helper()
	hosts := s.sims[node].Read("/etc/containerd/certs.d/registry.k8s.io/hosts.toml")
	for _, want := range []string{`"https://harbor.site.example:8443/v2/kube/registry.k8s.io"`, "Authorization = [\"Basic ", `ca = "/etc/containerd/certs.d/kubexm-registry.crt"`} {
		if !strings.Contains(hosts, want) {
			s.t.Errorf("%s: %s is not in\n%s", node, want, hosts)
		}
	}
	for _, file := range []string{"registry.k8s.io", "harbor.site.example:8443", "_default", "other.site.example"} {
		if f, ok := s.sims[node].File("/etc/containerd/certs.d/" + file + "/hosts.toml"); !ok || f.Mode != 0o600 {
			s.t.Errorf("%s: hosts.toml of %s has mode %v", node, file, f.Mode)
		}
	}
	if other := s.sims[node].Read("/etc/containerd/certs.d/other.site.example/hosts.toml"); !strings.Contains(other, `server = "http://other.site.example"`) {
		s.t.Errorf("%s: %s", node, other)
	}
	if etc := s.sims[node].Read("/etc/hosts"); !strings.Contains(etc, "192.0.2.99 harbor.site.example") {
		s.t.Errorf("%s: /etc/hosts: %s", node, etc)
	}
}

// found gives all that an error says, with its advice.
func found(err error) string {
	switch x := err.(type) { //nolint:errorlint // it walks the tree itself
	case steps.Findings:
		text := ""
		for _, f := range x {
			text += f.Check + " on " + f.Host + ": " + f.What + "; " + f.Advice + "\n"
		}
		return text
	case interface{ Unwrap() []error }:
		text := ""
		for _, e := range x.Unwrap() {
			text += found(e)
		}
		return text
	case interface{ Unwrap() error }:
		return found(x.Unwrap())
	}
	return fmt.Sprintln(err)
}

// TestARegistryThatRefuses is found before anything is changed.
func TestARegistryThatRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site)
		want   []string
	}{
		"another password": {func(s *site) { s.outside.Password = "other" }, []string{"registryd.check-pull", "m1", "w2", "401", "auths"}},
		"no project":       {func(s *site) { s.outside.Project = "others/" }, []string{"send to kube/registry.k8s.io/", "404", "namespaceOverride"}},
		"tokens alone":     {func(s *site) { s.outside.Tokens = true }, []string{"only tokens"}},
		"nobody there":     {func(s *site) { s.outside.address = "192.0.2.98:8443" }, []string{"nobody is there", "curl -v https://harbor.site.example:8443/v2/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "registry-existing")
				c.change(s)
				first := s.state(true)
				err := s.run(pipeline.Create, nil)
				if err == nil {
					t.Fatal("the registry was taken")
				}
				text := found(err)
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("%q is not in\n%s", want, text)
					}
				}
				if strings.Contains(text, "canary-of-the-registry") {
					t.Error("the password was shown")
				}
				s.same("what a check finds changes nothing", first, s.state(true))
			})
		})
	}
}
