package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// wire is a connection to a host that carries TCP: to loopback, whoever is asked for.
type wire struct {
	*conntest.Sim
	to map[string]string // the address that is dialled → where it is here
}

func (w wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	at, ok := w.to[address]
	if !ok {
		return nil, errors.New("dial " + address + ": no route to host")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, at)
}

func (wire) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, errors.New("nobody listens here")
}

// outside is a store that stands already: its keys, and one member.
type outside struct {
	dir    string
	ca     pki.Pair
	server *httptest.Server
	health string
	keys   int
	prefix string // the one that was asked for
	denies bool
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{dir: t.TempDir(), health: `{"health":"true","reason":""}`}
	var err error
	if o.ca, err = pki.NewAuthority("somebody's etcd", time.Now()); err != nil {
		t.Fatal(err)
	}
	o.issue(t, "client", pki.Request{CommonName: "k8s", Client: true})
	cert, key := o.issue(t, "server", pki.Request{CommonName: "etcd", Names: []string{"192.0.2.41"}, Server: true})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(o.ca.Certificate)
	o.server = httptest.NewUnstartedServer(o)
	o.server.Config.ErrorLog = log.New(io.Discard, "", 0) // one is refused on purpose
	o.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	o.server.StartTLS()
	t.Cleanup(o.server.Close)
	return o
}

func (o *outside) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/health":
		if !strings.Contains(o.health, "true") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, o.health)
	case "/v3/kv/range":
		var asked struct {
			Key      []byte `json:"key"`
			RangeEnd []byte `json:"range_end"`
		}
		if err := json.NewDecoder(q.Body).Decode(&asked); err != nil || o.denies {
			http.Error(w, `{"error":"etcdserver: permission denied"}`, http.StatusForbidden)
			return
		}
		o.prefix = string(asked.Key) + " to " + string(asked.RangeEnd)
		answer := `{"header":{"revision":"7"}}` // a count of none is left out
		if o.keys > 0 {
			answer = fmt.Sprintf(`{"header":{"revision":"7"},"count":"%d"}`, o.keys)
		}
		fmt.Fprint(w, answer)
	default:
		http.NotFound(w, q)
	}
}

// issue makes a certificate of the store's CA, as files too.
func (o *outside) issue(t *testing.T, name string, r pki.Request) (cert, key []byte) {
	t.Helper()
	p, err := o.ca.Issue(r, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ca, _, err := o.ca.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if cert, key, err = p.Encode(); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{"ca.crt": ca, name + ".crt": cert, name + ".key": key} {
		if err := os.WriteFile(filepath.Join(o.dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// cluster is one that uses the store; rest goes at the end.
func (o *outside) cluster(t *testing.T, rest string) *manifest.Cluster {
	t.Helper()
	return steptest.Cluster(t, strings.Replace(three, "kubernetes: {version: v1.32.2}", "kubernetes: {version: v1.32.2"+rest+"}", 1)+
		"  etcd: {type: external, external: {endpoints: ['https://192.0.2.41:2379'], caFile: "+o.dir+"/ca.crt, certFile: "+o.dir+"/client.crt, keyFile: "+o.dir+"/client.key}}\n  network: {plugin: flannel}\n")
}

// check runs the step on a host, and gives what it found.
func (o *outside) check(t *testing.T, c *manifest.Cluster, s *conntest.Sim) (steps.Findings, error) {
	t.Helper()
	step := etcd.CheckExternal(c)
	h := steptest.Case{Cluster: c, Report: func(f steps.Finding) { t.Errorf("a warning: %+v", f) }}.NewHost(t, s, step)
	h.Runner = runner.New(wire{Sim: s, to: map[string]string{"192.0.2.41:2379": o.server.Listener.Addr().String()}}, runner.Options{})
	before := s.Snapshot()
	err := step.Run(t.Context(), h)
	if d := conntest.Diff(before, s.Snapshot()); d != "" {
		t.Errorf("a check changed:\n%s", d)
	}
	var found steps.Findings
	if errors.As(err, &found) {
		return found, nil
	}
	return nil, err
}

func TestCheckExternal(t *testing.T) {
	o := newOutside(t)
	began := func(s *conntest.Sim) { s.AddDir("/var/lib/kubexm/demo/before", 0o700) }
	for name, x := range map[string]struct {
		rest   string
		before func(*conntest.Sim)
		change func(*outside)
		want   string // in the finding; none where it is empty
		prefix string // that was asked for
	}{
		"healthy and empty":           {prefix: "/registry/ to /registry0"},
		"without most of its members": {change: func(o *outside) { o.health = `{"health":"false","reason":"RAFT NO LEADER"}` }, want: "not healthy: RAFT NO LEADER"},
		"no etcd":                     {change: func(o *outside) { o.health = "<html>true</html>" }, want: "unexpected response 200 OK"},
		"another cluster's":           {change: func(o *outside) { o.keys = 1234 }, want: "has 1234 keys under /registry/", prefix: "/registry/ to /registry0"},
		"this cluster's own":          {before: began, change: func(o *outside) { o.keys = 1234 }},
		"under a name of its own":     {rest: ", apiServer: {extraArgs: {etcd-prefix: /two}}", prefix: "/two/ to /two0"},
		"does not say":                {change: func(o *outside) { o.denies = true }},
	} {
		t.Run(name, func(t *testing.T) {
			was := *o
			defer func() { o.health, o.keys, o.denies = was.health, was.keys, was.denies }()
			o.prefix = ""
			if x.change != nil {
				x.change(o)
			}
			s := steptest.Case{Before: x.before}.Sim(t)
			found, err := o.check(t, o.cluster(t, x.rest), s)
			switch {
			case err != nil:
				t.Error(err)
			case x.want == "" && len(found) > 0, x.want != "" && (len(found) != 1 || !strings.Contains(found[0].What, x.want) || found[0].Advice == ""):
				t.Errorf("found %+v, want %q", found, x.want)
			}
			if o.prefix != x.prefix {
				t.Errorf("asked for %q, want %q", o.prefix, x.prefix)
			}
		})
	}
	t.Run("out of reach", func(t *testing.T) {
		c := o.cluster(t, "")
		c.Spec.Etcd.External.Endpoints = append(c.Spec.Etcd.External.Endpoints, "https://192.0.2.42:2379")
		found, err := o.check(t, c, steptest.Case{}.Sim(t))
		if err != nil || len(found) != 1 || !strings.Contains(found[0].What, "https://192.0.2.42:2379") || !strings.Contains(found[0].What, "no route to host") {
			t.Errorf("%+v, %v", found, err)
		}
	})
	t.Run("keys of another CA", func(t *testing.T) {
		other := newOutside(t)
		c := other.cluster(t, "")
		found, err := o.check(t, c, steptest.Case{}.Sim(t))
		if err != nil || len(found) != 1 || !strings.Contains(found[0].What, "certificate signed by unknown authority") {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestNoteLeft: a removal says which keys stay, and changes nothing.
func TestNoteLeft(t *testing.T) {
	c := newOutside(t).cluster(t, ", apiServer: {extraArgs: {etcd-prefix: two}}")
	var said []string
	kase := steptest.Case{Cluster: c, Report: func(f steps.Finding) { said = append(said, f.What+"; "+f.Advice) }}
	if found := steptest.Check(t, kase, etcd.ReportRemaining(c)); len(found) > 0 {
		t.Errorf("it stops a removal: %v", found)
	}
	if len(said) != 1 || !strings.Contains(said[0], "https://192.0.2.41:2379, under /two/") || !strings.Contains(said[0], "del --prefix /two/") {
		t.Errorf("%q", said)
	}
}

func TestCheckFiles(t *testing.T) {
	o := newOutside(t)
	o.issue(t, "serving", pki.Request{CommonName: "serving", Names: []string{"x"}, Server: true})
	now := time.Now()
	if err := os.WriteFile(filepath.Join(o.dir, "text"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		change func(*manifest.ExternalEtcd)
		at     time.Time
		want   string // path and message, in part
	}{
		"sound":                 {at: now},
		"no CA":                 {change: func(e *manifest.ExternalEtcd) { e.CAFile = o.dir + "/none" }, at: now, want: "caFile: open " + o.dir + "/none: no such file"},
		"a CA that is none":     {change: func(e *manifest.ExternalEtcd) { e.CAFile = o.dir + "/text" }, at: now, want: "caFile: " + o.dir + "/text: no certificate in PEM"},
		"no key":                {change: func(e *manifest.ExternalEtcd) { e.KeyFile = o.dir + "/none" }, at: now, want: "certFile: open " + o.dir + "/none"},
		"another's key":         {change: func(e *manifest.ExternalEtcd) { e.KeyFile = o.dir + "/server.key" }, at: now, want: "certFile: tls: private key does not match public key"},
		"a certificate in text": {change: func(e *manifest.ExternalEtcd) { e.CertFile = o.dir + "/text" }, at: now, want: "certFile: tls: failed to find any PEM data"},
		"expired":               {at: now.Add(2 * pki.LeafLifetime), want: "certFile: the certificate of k8s expired on " + now.Add(pki.LeafLifetime).UTC().Format("2006-01")},
		"not valid yet":         {at: now.Add(-time.Hour), want: "certFile: the certificate of k8s is not valid before"},
		"for servers only": {change: func(e *manifest.ExternalEtcd) { e.CertFile, e.KeyFile = o.dir+"/serving.crt", o.dir+"/serving.key" }, at: now,
			want: "certFile: the certificate is valid for servers only"},
	} {
		t.Run(name, func(t *testing.T) {
			c := o.cluster(t, "")
			if x.change != nil {
				x.change(&c.Spec.Etcd.External)
			}
			found := etcd.CheckFiles(c, x.at)
			if x.want == "" && len(found) > 0 || x.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), "spec.etcd.external."+x.want) || found[0].Advice == "") {
				t.Errorf("%v, want %q", found, x.want)
			}
		})
	}
	if found := etcd.CheckFiles(steptest.Cluster(t, three+plain), now); len(found) > 0 {
		t.Errorf("of a store of our own: %v", found)
	}
	none := o.cluster(t, "")
	none.Spec.Etcd.External.CAFile, none.Spec.Etcd.External.CertFile = "", ""
	if found := etcd.CheckFiles(none, now); len(found) > 0 {
		t.Errorf("of a store without keys: %v", found)
	}
}
