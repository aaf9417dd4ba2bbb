package e2e

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// drives starts the drivers against the site's cluster: its API is asked from the workdir
// host, and its Services from a node. Without a balancer every master's API server is as
// good as another. A test that ends without stopping them leaves nothing of them either.
func (s *labSite) drives(t testing.TB, node string, changes ...func(*drivers.Config)) *drivers.Drivers {
	t.Helper()
	text, err := os.ReadFile(s.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := drivers.Kubeconfig(text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Host(node)
	if err != nil {
		t.Fatal(err)
	}
	c.Dial = drivers.Within("/run/netns/" + s.Workdir().Netns).Dial
	c.ServiceDial = drivers.Within(s.Namespace(h)).Dial
	for _, master := range s.masters {
		c.Addresses = append(c.Addresses, net.JoinHostPort(s.address(t, master), "6443"))
	}
	for _, change := range changes {
		change(&c)
	}
	d, err := drivers.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
		defer cancel()
		if _, err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}

// isDriven has the API server of one master of three end gracefully and begin again, and
// then every part of the control plane restart, while clients are at work.
func (s *walkSite) isDriven(t testing.TB) {
	const inPlace, away = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kube-apiserver.yaml"
	on := s.masters[1]
	d := s.drives(t, "h5")
	time.Sleep(20 * time.Second)

	d.Mark("API server stops")
	t.Cleanup(func() { s.on(t, on, "! test -e "+away+" || mv "+away+" "+inPlace) })
	s.on(t, on, "mv "+inPlace+" "+away)
	s.eventually(t, on, "test -z \"$(crictl ps -q --name kube-apiserver)\"")
	time.Sleep(10 * time.Second)

	d.Mark("API server starts")
	s.on(t, on, "mv "+away+" "+inPlace)
	s.eventually(t, on, atHome+kubectl+"--request-timeout=10s get --raw /readyz")
	time.Sleep(10 * time.Second)

	d.Mark("control plane restarts")
	said(t, s.kubexm(t, "restart", "control-plane", "-f", s.configFile(), "--yes"), 0, "restart-control-plane of cluster site: done")

	report, err := d.Stop(t.Context())
	if err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", report)
	limits := map[string]drivers.Limit{"API server stops": {Gap: 250 * time.Millisecond, Watch: 5 * time.Second}}
	// Without a balancer nobody asks whether a server is ready before it is sent requests.
	starting := drivers.Limit{Gap: time.Second, Watch: 5 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}
	limits["API server starts"], limits["control plane restarts"] = starting, starting
	for phase, limit := range limits {
		if err := report.Check(phase, limit); err != nil {
			t.Error(err)
		}
	}
}
