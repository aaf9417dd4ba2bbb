package drivers

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUnread: where the API is away at the end, nothing is said of lost writes, and what
// is left behind is said.
func TestUnread(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	s := f.serve(t, "")
	c := f.config(s)
	c.Writes = 50
	d := started(t, c)
	d.config.Settle = 300 * time.Millisecond
	d.passes(t, 10)
	s.CloseClientConnections()
	s.Close()
	r, err := d.Stop(t.Context())
	if err == nil || !strings.Contains(err.Error(), "read the writes back") || !strings.Contains(err.Error(), "remove what was created") {
		t.Errorf("it says %v", err)
	}
	if err := r.Check(Baseline, Limit{Gap: time.Minute, Watch: time.Minute, Failed: Unlimited, NewFailed: Unlimited}); err == nil || !strings.Contains(err.Error(), "were not read back") {
		t.Errorf("the check says %v", err)
	}
	if again, twice := d.Stop(t.Context()); again != r || twice == nil {
		t.Error("a second Stop says otherwise")
	}
}

// TestUnserved: a Service that nobody answers for is seen on both ways, each request by
// its target; the API's writes are not.
func TestUnserved(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 50
	d := started(t, c)
	d.passes(t, 10)
	d.Mark("unserved")
	f.stopWeb()
	d.passes(t, 40)
	r, p := stopped(t, d, "unserved")
	n, s := p.Ways[NodePort], p.Ways[Service]
	if n.Failed < 5 || n.Errors[f.web+" connection refused"] == 0 || s.Failed < 5 || s.Errors["192.0.2.1:80 connection refused"] == 0 || p.Ways[Writes].Failed > 0 {
		t.Errorf("%+v, %+v, %+v", n, s, p.Ways[Writes])
	}
	if err := r.Check("unserved", Limit{Gap: time.Minute, Watch: time.Minute, NewFailed: Unlimited}); err == nil {
		t.Error("the check finds nothing")
	}
}

// TestProbe: what is no answer of a web server's is a failure.
func TestProbe(t *testing.T) {
	held := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "good:80":
			_, _ = io.WriteString(w, "web-1")
		case "ill:80":
			http.Error(w, "ill", http.StatusServiceUnavailable)
		case "slow:80":
			<-held
		}
	}))
	defer s.Close()
	defer close(held)
	connections := 0
	p := newProber(NodePort, func(ctx context.Context, network, _ string) (net.Conn, error) {
		connections++
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}, []string{"good:80", "ill:80", "empty:80", "slow:80"}, time.Second)
	for n, want := range []string{"", "ill:80 503 with 4 bytes", "empty:80 200 with 0 bytes", "slow:80 timeout", "", "ill:80 503 with 4 bytes"} {
		got := ""
		if err := p.probe(t.Context(), n); err != nil {
			got = reason(err)
		}
		if got != want || connections != n+1 {
			t.Errorf("%d: %q over %d connections, want %q", n, got, connections, want)
		}
	}
}

// TestStartFails: what was created by then goes again.
func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fakeAPI, *Config)
		want   string
	}{
		"nobody serves":          {func(f *fakeAPI, _ *Config) { f.stopWeb() }, "NodePort: "},
		"no way to the Service":  {func(_ *fakeAPI, c *Config) { c.ServiceDial = (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext }, "Service: "},
		"the watch is forbidden": {func(f *fakeAPI, _ *Config) { f.token = "nobody" }, "no watch of ConfigMaps began"},
		"another CA":             {func(_ *fakeAPI, c *Config) { c.ServerName = "another.example" }, "certificate"},
		"no endpoint":            {func(_ *fakeAPI, c *Config) { c.Endpoint = "" }, "no API endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			config := f.config(f.serve(t, ""))
			config.Settle = 300 * time.Millisecond
			c.change(f, &config)
			d, err := Start(t.Context(), config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			if d != nil || f.exists {
				t.Errorf("drivers: %v, the namespace is there: %v", d != nil, f.exists)
			}
		})
	}
}

// TestAddresses: without a balancer the address that accepts is as good as another.
func TestAddresses(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	good := s.Listener.Addr().String()
	var asked []string
	c := Config{Addresses: []string{"a:1", good, "c:3"}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		asked = append(asked, address)
		if address != good {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	dial := c.dialAny()
	for range 3 {
		conn, err := dial(t.Context(), "tcp", "endpoint:6443")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if got, want := strings.Join(asked, " "), strings.Join([]string{good, "c:3", "a:1", good, "a:1", good}, " "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	c.Addresses = []string{"a:1"}
	if _, err := c.dialAny()(t.Context(), "tcp", "endpoint:6443"); err == nil {
		t.Error("an address that does not answer was reached")
	}
}

func TestKubeconfig(t *testing.T) {
	c, err := Kubeconfig([]byte(`apiVersion: v1
clusters: [{name: site, cluster: {server: "https://192.0.2.1:6443", tls-server-name: api.site.example, certificate-authority-data: Y2E=}}]
users: [{name: admin, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Endpoint != "https://192.0.2.1:6443" || c.ServerName != "api.site.example" || string(c.CA) != "ca" || string(c.Certificate) != "cert" || string(c.Key) != "key" {
		t.Errorf("%+v", c)
	}
	for _, text := range []string{"clusters: []", "clusters: [{cluster: {certificate-authority-data: '!'}}]\nusers: [{}]", "{"} {
		if _, err := Kubeconfig([]byte(text)); err == nil {
			t.Errorf("%q is a kubeconfig", text)
		}
	}
}
