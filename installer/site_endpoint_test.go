package installer_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector"
)

// refuses is a load balancer without a server behind it.
func refuses() (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// TestALoadBalancerThatExists: it is waited for once the first API server runs, all
// nodes name it, and nothing of it is set up or taken away.
func TestALoadBalancerThatExists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "endpoint-existing")
		first := s.State(true)
		var early atomic.Int32
		s.Balancer = func(string) (net.Conn, error) {
			conn, err := s.Kube.Endpoint()
			if err == nil && early.Add(1) <= 3 { // it takes a moment to count a server in
				_ = conn.Close()
				return refuses()
			}
			return conn, err
		}
		s.Must(pipeline.Create, "create")
		for _, h := range []string{"m1", "m2", "w1"} {
			if etc := s.Sims[h].Read("/etc/hosts"); !strings.Contains(etc, "192.0.2.100 api.site.example\n") {
				t.Errorf("%s: /etc/hosts:\n%s", h, etc)
			}
		}
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return w == "the load balancer at 192.0.2.100:443 refuses connections" }) {
			t.Errorf("before the API servers: %q", s.Warnings)
		}
		if early.Load() < 4 {
			t.Errorf("it was asked %d times", early.Load())
		}
		s.Warnings = nil
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 || len(s.Warnings) > 0 {
			t.Errorf("a second creation ran %q, and said %q", ran, s.Warnings)
		}
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// TestALoadBalancerOfOthers: whoever answers with a certificate of another CA is no API
// server of this cluster, and no node joins through it.
func TestALoadBalancerOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "endpoint-existing")
		s.Balancer = func(string) (net.Conn, error) { return s.Kube.Stranger() }
		err := s.Run(pipeline.Create, nil)
		if err == nil || !strings.Contains(err.Error(), "the server at 192.0.2.100:443 is not an API server of this cluster") {
			t.Fatal(err)
		}
		if _, ok := s.Sims["w1"].File("/etc/kubernetes/kubelet.conf"); ok {
			t.Error("a worker has joined")
		}
	})
}

// TestALoadBalancerThatIsNotThere: nothing is changed on any host.
func TestALoadBalancerThatIsNotThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "endpoint-existing")
		first := s.State(true)
		s.Balancer = func(host string) (net.Conn, error) {
			if host == "w1" {
				return nil, &connector.DialError{Addr: host, Err: errors.New("dial 192.0.2.100:443 from the host: no route to host")}
			}
			return refuses()
		}
		if err := s.Run(pipeline.Create, nil); err == nil || !strings.Contains(err.Error(), "cannot reach the load balancer at 192.0.2.100:443") {
			t.Fatal(err)
		}
		s.Same("nothing was changed", first, s.State(true))
	})
}

// TestANameOfTheSites: with externalDNS no host gets a line of the control plane's name,
// and the kubeconfig here has the name.
func TestANameOfTheSites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := siteOf(t, strings.Replace(newSite(t, "single").config, "  kubernetes:", "  controlPlaneEndpoint: {domain: api.site.example, externalDNS: true}\n  kubernetes:", 1), "single")
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		if etc := s.Sims["node1"].Read("/etc/hosts"); strings.Contains(etc, "api.site.example") {
			t.Errorf("/etc/hosts:\n%s", etc)
		}
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}
