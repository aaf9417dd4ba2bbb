package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps/pki"
)

// asKubexm is the environment that kubexm writes.
var asKubexm = []string{
	"vip_arp=true", "address=192.0.2.100", "port=6443", "vip_interface=eth0", "vip_nodename=m1", "cp_enable=true", "cp_namespace=kube-system",
	"vip_leaderelection=true", "vip_leasename=plndr-cp-lock", "vip_leaseduration=5", "vip_renewdeadline=3", "vip_retryperiod=1",
	"prometheus_server=127.0.0.1:2112", "PATH=/usr/bin", "KUBERNETES_PORT=tcp://10.96.0.1:443",
}

func TestReadConfig(t *testing.T) {
	c, err := readConfig(asKubexm)
	want := config{
		address: "192.0.2.100", port: "6443", networkInterface: "eth0", node: "m1", namespace: "kube-system", leaseName: "plndr-cp-lock",
		metrics: "127.0.0.1:2112", duration: 5 * time.Second, deadline: 3 * time.Second, retry: time.Second,
	}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	for line, words := range map[string]string{
		"vip_arp=false": "no valid kube-vip mode", "cp_enable=": "no features", "vip_leaderelection=no": "each master", "address=": "address is",
		"address=2001:db8::1": "IPv4", "vip_interface=": "vip_interface", "vip_nodename=": "vip_nodename", "cp_namespace=": "cp_namespace", "port=0": "port is",
		"vip_subnet=/32": "failed to set mask", "vip_leaseduration=3": "leaseDuration must be greater", "vip_retryperiod=3": "renewDeadline must be greater",
		"vip_leaseduration=5s": "no number of seconds", "vip_cidr=32": "unknown variables", "vip_leaseDuration=5": "unknown variables",
	} {
		name, _, _ := strings.Cut(line, "=")
		environ := append(slices.DeleteFunc(slices.Clone(asKubexm), func(l string) bool { return strings.HasPrefix(l, name+"=") }), line)
		if _, err := readConfig(environ); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := run(t.Context(), []string{"start"}, asKubexm); err == nil || !strings.Contains(err.Error(), "unknown arguments") {
		t.Errorf("%v", err)
	}
}

// api is an API server with one Lease.
type api struct {
	mu      sync.Mutex
	stored  *object
	version int
	allowed bool
	away    bool
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const folder = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	refuse := func(code int, message string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","message":%q}`, message)
	}
	var in object
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Content-Type") != "application/json" {
			refuse(http.StatusBadRequest, "no JSON")
			return
		}
	}
	given, _ := in.Metadata["resourceVersion"].(string)
	switch {
	case a.away:
		refuse(http.StatusInternalServerError, "etcdserver: request timed out")
		return
	case !a.allowed:
		refuse(http.StatusForbidden, `leases.coordination.k8s.io "plndr-cp-lock" is forbidden: User "kube-vip" cannot `+r.Method)
		return
	case r.Method == http.MethodPost && r.URL.Path == folder && a.stored == nil:
	case r.URL.Path != folder+"/plndr-cp-lock" || a.stored == nil:
		refuse(http.StatusNotFound, "not found")
		return
	case r.Method == http.MethodPut && given != fmt.Sprint(a.version):
		refuse(http.StatusConflict, "the object has been modified")
		return
	}
	if r.Method != http.MethodGet {
		a.version++
		in.Metadata["resourceVersion"] = fmt.Sprint(a.version)
		a.stored = &in
	}
	_ = json.NewEncoder(w).Encode(a.stored)
}

func (a *api) set(change func(*api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *api) spec() leaseSpec {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stored == nil {
		return leaseSpec{}
	}
	return a.stored.Spec
}

// inProcess sends requests to a handler without a network.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// member starts one that takes part, and returns what ends it, and reports of its end.
func member(ctx context.Context, a *api, name string, has func(string, bool)) (stop func(), ended <-chan error) {
	ctx, stop = context.WithCancel(ctx)
	c := &client{base: "https://kubernetes:6443", http: &http.Client{Transport: inProcess{a}}}
	e := &elector{lease: c.lease("kube-system", "plndr-cp-lock"), identity: name, duration: 5 * time.Second, deadline: 3 * time.Second, retry: time.Second}
	done := make(chan error, 1)
	go func() {
		done <- e.run(ctx, func(ctx context.Context) {
			has(name, true)
			<-ctx.Done()
			has(name, false)
		})
	}()
	return stop, done
}

func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var holders []string
		has := func(name string, is bool) {
			mu.Lock()
			defer mu.Unlock()
			if holders = slices.DeleteFunc(holders, func(h string) bool { return h == name }); is {
				holders = append(holders, name)
			}
		}
		holder := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(holders, want) {
				t.Fatalf("leaders: %q, want %q", holders, want)
			}
		}
		a := &api{}
		stop1, ended1 := member(t.Context(), a, "m1", has)
		time.Sleep(time.Minute)
		holder() // it may not take leases, and tries on
		a.set(func(a *api) { a.allowed = true })
		time.Sleep(3 * time.Second)
		holder("m1")
		first := a.spec()
		stop2, ended2 := member(t.Context(), a, "m2", has)
		time.Sleep(time.Minute)
		holder("m1")
		if now := a.spec(); now.Transitions != 0 || now.Acquired != first.Acquired || now.Renewed == first.Renewed || now.Seconds != 5 {
			t.Errorf("first %+v, now %+v", first, now)
		}

		// One that ends gives the Lease up at once.
		stop1()
		if err := <-ended1; err != nil {
			t.Error(err)
		}
		time.Sleep(2300 * time.Millisecond) // a retry with its jitter
		holder("m2")
		if now := a.spec(); now.Holder != "m2" || now.Transitions != 1 {
			t.Errorf("%+v", now)
		}

		// One that cannot renew its Lease ends itself, before another one may take it.
		a.set(func(a *api) { a.away = true })
		if err := <-ended2; !errors.Is(err, errLost) {
			t.Error(err)
		}
		holder()
		a.set(func(a *api) { a.away = false })
		began := time.Now()
		stop3, ended3 := member(t.Context(), a, "m3", has)
		for a.spec().Holder != "m3" {
			time.Sleep(100 * time.Millisecond)
		}
		if waited := time.Since(began); waited < 5*time.Second || waited > 8*time.Second {
			t.Errorf("it took over after %v", waited)
		}
		holder("m3")
		stop2()
		stop3()
		if err := <-ended3; err != nil {
			t.Error(err)
		}
	})
}

// TestConflict: of two that read the same Lease one takes it.
func TestConflict(t *testing.T) {
	a := &api{allowed: true}
	l := (&client{http: &http.Client{Transport: inProcess{a}}}).lease("kube-system", "plndr-cp-lock")
	if _, err := l.create(t.Context(), leaseSpec{Holder: "m1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.create(t.Context(), leaseSpec{Holder: "m2"}); err == nil {
		t.Error("created twice")
	}
	o, err := l.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.update(t.Context(), o); err != nil {
		t.Error(err)
	}
	if _, err := l.update(t.Context(), o); !isCode(err, http.StatusConflict) {
		t.Errorf("%v", err)
	}
}

// TestClient: the certificate of the kubeconfig is shown, and a server of another CA is refused.
func TestClient(t *testing.T) {
	now := time.Now()
	must := func(p pki.Pair, err error) pki.Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ca, other := must(pki.NewAuthority("cluster", now)), must(pki.NewAuthority("other", now))
	own := must(ca.Issue(pki.Request{CommonName: "kube-vip", Client: true}, now))
	served := must(ca.Issue(pki.Request{CommonName: "kube-apiserver", Server: true, Names: []string{"127.0.0.1"}}, now))
	cert, key, err := served.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.Certificate)
	a := &api{allowed: true}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != "kube-vip" {
			t.Errorf("the client is %s", got)
		}
		a.ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	base := "https://" + server.Listener.Addr().String()
	conf := func(authority pki.Pair) []byte {
		c, k, err := own.Encode()
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString
		return []byte("clusters: [{cluster: {server: 'https://elsewhere', certificate-authority-data: " + text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate.Raw})) +
			"}}]\nusers: [{user: {client-certificate-data: " + text(c) + ", client-key-data: " + text(k) + "}}]\n")
	}
	c, err := newClient(conf(ca), base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.lease("kube-system", "plndr-cp-lock").create(t.Context(), leaseSpec{Holder: "m1"}); err != nil {
		t.Error(err)
	}
	if c, err = newClient(conf(other), base); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lease("kube-system", "plndr-cp-lock").get(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "{", "clusters: [{}]\nusers: [{}]\n", "clusters: [{cluster: {certificate-authority-data: '*'}}]\nusers: [{}]\n"} {
		if _, err := newClient([]byte(bad), base); err == nil {
			t.Errorf("%q is a kubeconfig", bad)
		}
	}
}

// counted is an address that counts.
type counted struct{ added, announced int }

func (c *counted) add(context.Context) error { c.added++; return nil }
func (c *counted) announce() error           { c.announced++; return nil }

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var c counted
		hold(ctx, &c)
		if c.added != 4 || c.announced != 4 {
			t.Errorf("%+v", c)
		}
	})
}

func TestGratuitous(t *testing.T) {
	got := gratuitous(net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.ParseIP("192.0.2.100"))
	want := []byte{0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 100, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 192, 0, 2, 100}
	if !slices.Equal(got, want) {
		t.Errorf("% x", got)
	}
}

// TestLink: an interface without the address gives none up, and one that does not exist is
// refused.
func TestLink(t *testing.T) {
	if _, err := newLink("no-such-link", "192.0.2.100"); err == nil {
		t.Error("no error")
	}
	l, err := newLink("lo", "192.0.2.100")
	if err != nil {
		t.Skip(err)
	}
	if err := l.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.announce(); err == nil || !strings.Contains(err.Error(), "no Ethernet address") {
		t.Errorf("%v", err)
	}
}
