package installer

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// silent accepts connections at a port or a socket, and says nothing.
func silent(t *testing.T, network, address string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// TestSilentPeers: whatever kubexm connects to may accept and say nothing, and
// nobody waits for that for ever. What kubexm learns to connect to is added here.
func TestSilentPeers(t *testing.T) {
	t.Parallel()
	const moment = 200 * time.Millisecond
	waits := transfer.Timeouts{Connect: moment, Header: moment, Idle: moment}
	at := silent(t, "tcp", "127.0.0.1:0")
	name, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	// onHost gives a host whose sshd works, and from which every address is silent.
	onHost := func(t *testing.T) *steps.Host {
		server := sshtest.Start(t, sshtest.Config{Password: "secret", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at)
		}})
		c := clusterOf(t, host("a", server, ""))
		o := options(t, c, server)
		o.Timeouts, o.CommandTimeout = waits, 5*time.Second // of a command such as one that asks what the host is
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		h := s.Host(c.Spec.Hosts[0])
		h.Cluster = c
		return h
	}
	dialed := func(t *testing.T, hosts ...string) error { // of a site with these hosts
		c := clusterOf(t, hosts...)
		o := options(t, c)
		o.LookupEnv = func(name string) (string, bool) {
			return map[string]string{"SSH_AUTH_SOCK": filepath.Join(o.Base, "agent"), "SSH_PASSWORD": "secret"}[name], true
		}
		silent(t, "unix", filepath.Join(o.Base, "agent"))
		_, err := Open(t.Context(), o)
		return err
	}
	asked := func(ctx context.Context, target registry.Target, err error) error {
		if err != nil {
			return err
		}
		return registry.CheckPull(ctx, target)
	}
	external := func(host string, plain bool) manifest.Registry {
		return manifest.Registry{Type: "external", PrivateRegistry: host, Auths: map[string]manifest.RegistryAuth{host: {PlainHTTP: plain, SkipTLSVerify: !plain}}}
	}
	var rows sync.WaitGroup
	for what, wait := range map[string]func(t *testing.T, ctx context.Context) error{
		"sshd of a host": func(t *testing.T, _ context.Context) error {
			return dialed(t, fmt.Sprintf("    - {name: a, address: %s, port: %s, password: secret, connectionTimeout: 1s, hostKeyPolicy: accept-new}\n", name, port))
		},
		"sshd of a jump host": func(t *testing.T, _ context.Context) error {
			return dialed(t, fmt.Sprintf("    - {name: a, address: 127.0.0.1, password: secret, jumpHost: {address: %s, port: %s, password: x, connectionTimeout: 1s, hostKeyPolicy: accept-new}}\n", name, port))
		},
		"sshd behind a jump host": func(t *testing.T, _ context.Context) error {
			jump := sshtest.Start(t, sshtest.Config{Password: "x"})
			return dialed(t, fmt.Sprintf("    - {name: a, address: %s, port: %s, password: secret, connectionTimeout: 1s, hostKeyPolicy: accept-new, jumpHost: {address: %s, port: %d, password: x, hostKeyPolicy: accept-new}}\n", name, port, jump.Host, jump.Port))
		},
		"the SSH agent": func(t *testing.T, _ context.Context) error {
			server := sshtest.Start(t, sshtest.Config{Password: "other"})
			return dialed(t, fmt.Sprintf("    - {name: a, address: %s, port: %d, agent: true, connectionTimeout: 1s, hostKeyPolicy: accept-new}\n", server.Host, server.Port))
		},
		"a program on a host, such as kubectl": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			_, err := h.Exec(ctx, "sleep", "600")
			return err
		},
		"the cluster's registry, through its host": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			h.Cluster.Spec.Registry = manifest.Registry{Type: "registry", PrivateRegistry: "reg.site:5000"}
			a := registryd.AccessOf(h)
			if _, err := a.Authority(time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Password(registryd.PushUser); err != nil {
				t.Fatal(err)
			}
			target, err := registryd.Reach(h.Cluster, h)
			return asked(ctx, target, err)
		},
		"a registry that exists, over TLS": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			h.Cluster.Spec.Registry = external(at, false)
			target, err := registryd.Reach(h.Cluster, h)
			return asked(ctx, target, err)
		},
		"a registry that exists, over plain http": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			h.Cluster.Spec.Registry = external(at, true)
			target, err := registryd.Reach(h.Cluster, h)
			return asked(ctx, target, err)
		},
		"a registry that exists, asked for all it holds": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			h.Cluster.Spec.Registry = external(at, true)
			target, err := registryd.Reach(h.Cluster, h)
			if err != nil {
				return err
			}
			_, err = registry.Survey(ctx, target, nil, 1)
			return err
		},
		"a registry that a bundle is pushed to or pulled from": func(t *testing.T, ctx context.Context) error {
			client, err := transfer.Remote{Reference: at + "/x:1", PlainHTTP: true, Timeouts: waits}.Client()
			if err != nil {
				return err
			}
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/v2/", io.LimitReader(zeros{}, 64<<20)) // more than a socket takes
			if err != nil {
				return err
			}
			r, err := client.Do(q)
			if err == nil {
				_ = r.Body.Close()
			}
			return err
		},
		"upstream": func(t *testing.T, ctx context.Context) error {
			cache, err := fetch.OpenCache(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			f, err := fetch.New(fetch.Options{Cache: cache, Stall: moment, Attempts: 2, Backoff: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			return f.FetchArtifact(ctx, manifest.Artifact{Name: "x", Kind: manifest.Binary, Address: "https://" + at + "/x", SHA256: strings.Repeat("0", 64), Size: 1})
		},
		"an etcd that exists": func(t *testing.T, ctx context.Context) error {
			h := onHost(t)
			h.Cluster.Spec.Etcd.External.Endpoints = []string{"http://192.0.2.9:2379"}
			var said []steps.Finding
			h = h.WithReport(func(x steps.Finding) { said = append(said, x) })
			if err := etcd.CheckExternal(h.Cluster).Run(ctx, h); err != nil {
				return err
			}
			return fmt.Errorf("said %v", said)
		},
	} {
		// They only wait: more of them wait at once than t.Parallel allows.
		rows.Go(func() {
			t.Run(what, func(t *testing.T) {
				ended := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { ended <- wait(t, ctx) }()
				select {
				case err := <-ended:
					if err == nil {
						t.Error("it was answered")
					}
					t.Log(err)
				case <-time.After(20 * time.Second):
					t.Error("somebody waits still")
				}
			})
		})
	}
	rows.Wait()
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
