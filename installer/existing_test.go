package installer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// TestARegistryThatStandsIsReached: by a session, which asks it for an inventory
// and for the layers of a delta: directly, and over SSH where nothing answers this
// machine. Its password comes from where the config says.
func TestARegistryThatStandsIsReached(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{true, false} {
		p := registrytest.NewProduct()
		p.User, p.Password = "robot", "canary-x"
		srv := httptest.NewServer(p)
		t.Cleanup(srv.Close)
		at := strings.TrimPrefix(srv.URL, "http://")
		name := at
		if !direct {
			name = nobody(t)
		}
		var through atomic.Int64
		server := sshtest.Start(t, sshtest.Config{Password: "secret", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			through.Add(1)
			if address != name {
				t.Errorf("%s was dialed from the host", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, at)
		}})
		s := &deltaSite{server: server, mill: newMill(t)}
		c := clusterOf(t, host("a", s.server, ""))
		c.Spec.Registry = manifest.Registry{Type: "external", PrivateRegistry: name, NamespaceOverride: "kube", Auths: map[string]manifest.RegistryAuth{
			name: {Username: "robot", Password: manifest.NewSecret("${env:OF_REGISTRY}"), PlainHTTP: true},
		}}
		s.options = options(t, c, s.server)
		old := s.options.LookupEnv
		full := s.mill.build("full.tar.zst", nil, "kubelet 1", "one", "two")

		// Without the password a run with a bundle does not begin.
		s.options.Bundle = open(t, full)
		if _, err := Open(t.Context(), s.options); !errors.Is(err, manifest.ErrSecretMissing) && (err == nil || !strings.Contains(err.Error(), "OF_REGISTRY is not set")) {
			t.Errorf("without the password: %v", err)
		}
		s.options.LookupEnv = func(name string) (string, bool) {
			if name == "OF_REGISTRY" {
				return "canary-x", true
			}
			return old(name)
		}
		x := s.session(t, open(t, full))
		h := x.Host(c.Spec.Hosts[0])
		to, err := x.registry()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fill(t, to, h.Artifacts); err != nil {
			t.Fatal(err)
		}
		if p.Manifest("kube/registry.k8s.io/pause", "3.10") == "" {
			t.Error("the image is not there")
		}
		if secrets := x.secrets(); !slices.Contains(secrets, "canary-x") || !slices.Contains(secrets, "cm9ib3Q6Y2FuYXJ5LXg=") {
			t.Errorf("%d secrets, and not the login", len(secrets))
		}
		s.keep(t, x)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		i, passed := s.inventory(t, full)
		if len(passed) > 0 || i.Registry.State != manifest.RegistryRunning || len(i.Registry.Images) != 1 {
			t.Errorf("inventory: %v, %+v", passed, i.Registry)
		}

		// A layer of a delta that only the registry has.
		delta := s.mill.build("delta.tar.zst", i, "kubelet 2", "one", "two", "three")
		y := s.session(t, open(t, delta))
		if err := y.AddRegistrySource(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, im := range y.Bundle.Lock.Images {
			tree, err := y.Bundle.Tree(im)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range tree {
				rc, _, err := y.Bundle.Blob(d.Digest.String())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, rc); err != nil {
					t.Error(err)
				}
				_ = rc.Close()
			}
		}
		if err := y.Close(); err != nil {
			t.Fatal(err)
		}
		if (through.Load() > 0) == direct {
			t.Errorf("reached from here: %t, and %d connections through the host", direct, through.Load())
		}
	}
}

// nobody gives an address of this machine where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
