package loadbalancer

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// stats is what haproxy 2.6 prints, with most of its columns left out.
const stats = "HTTP/1.1 200 OK\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n" +
	"# pxname,svname,scur,status,lastchg,check_status,check_code,check_duration,last_chk,\n" +
	"api,FRONTEND,3,OPEN,,,,,,\n" +
	"ready,m1,3,UP,60,L7OK,200,2,\"HTTP status check returned code <200>\",\n" +
	"ready,m2,0,DOWN 1/3,5,L7TOUT,,1000,,\n" +
	"ready,BACKEND,3,UP,60,,,,,\n" +
	"open,m1,0,UP,60,L4OK,,0,,\n"

func TestParseStats(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	// The response of haproxy 2.6.12 with one server that refuses connections: HTTP/1.1, in
	// chunks, although the request was HTTP/1.0.
	real, err := os.ReadFile("testdata/stats")
	if err != nil {
		t.Fatal(err)
	}
	servers, err := parseStats(real, now)
	if d := cmp.Diff([]Server{{Name: "h1", State: "DOWN", Since: now.Add(-3 * time.Second), Check: "L4CON"}}, servers); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for cut := range len(real) - len("0\r\n\r\n") {
		if got, err := parseStats(real[:cut], now); err == nil {
			t.Fatalf("cut at %d: %+v", cut, got)
		}
	}
	want := []Server{
		{Name: "m1", Up: true, State: "UP", Since: now.Add(-time.Minute), Check: "L7OK/200"},
		{Name: "m2", State: "DOWN 1/3", Since: now.Add(-5 * time.Second), Check: "L7TOUT"},
	}
	got, err := parseStats([]byte(stats), now)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for name, text := range map[string]string{
		"nothing":              "",
		"another status":       "HTTP/1.0 503 Service Unavailable\r\n\r\n# pxname,svname\nready,m1\n",
		"no body":              "HTTP/1.0 200 OK\r\n\r\n",
		"no server":            "HTTP/1.0 200 OK\r\n\r\n# pxname,svname,status\napi,FRONTEND,OPEN\n",
		"a quote without end":  "HTTP/1.0 200 OK\r\n\r\n# pxname,svname\nready,\"m1\n",
		"a table without head": "HTTP/1.0 200 OK\r\n\r\nready,m1,UP\n",
	} {
		if got, err := parseStats([]byte(text), now); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzParseStats(f *testing.F) {
	f.Add([]byte(stats))
	f.Add([]byte("HTTP/1.0 200 OK\r\n\r\n# svname,pxname\nm1,ready\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseStats(text, time.Now())
		if err == nil && len(got) == 0 {
			t.Error("no server and no error")
		}
	})
}

func TestStatus(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, c := range map[string]struct {
		config, state string
		stopped, vip  bool
		want          Status
	}{
		"haproxy, active":         {config: balanced, state: "MASTER 1772600767\n", vip: true, want: Status{Holds: true, State: "MASTER", Since: at}},
		"haproxy, standby":        {config: balanced, state: "BACKUP 1772600767\n", want: Status{State: "BACKUP", Since: at}},
		"haproxy, never notified": {config: balanced},
		"haproxy, half written":   {config: balanced, state: "MAST"},
		"nginx checks no server":  {config: with("kubexm-kh", "kubexm-kn"), state: "MASTER 1772600767\n", vip: true, want: Status{Holds: true, State: "MASTER", Since: at}},
		"a service is stopped":    {config: balanced, stopped: true, want: Status{Stopped: []string{"haproxy.service", "keepalived.service"}}},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: steptest.Cluster(t, c.config), Before: func(s *conntest.Sim) {
				for _, unit := range []string{"haproxy", "nginx", "keepalived"} {
					s.AddUnit(unit+".service", "[Service]\nExecStart=/usr/sbin/"+unit+"\n", !c.stopped, true)
				}
				if c.state != "" {
					s.AddFile(stateFile, c.state, 0o644)
				}
				s.HandleProgram("bash", func(cmd connector.Cmd, _ []byte) (connector.Result, bool) {
					if cmd.Argv[len(cmd.Argv)-1] != "8405" {
						t.Errorf("%q", cmd.Argv)
					}
					return connector.Result{Stdout: []byte(stats)}, true
				})
			}}
			h := kase.NewHost(t, kase.Sim(t), Install(kase.Cluster))
			if h.Facts.Interfaces = nil; c.vip {
				h.Facts.Interfaces = []runner.Interface{{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.31/24"), netip.MustParsePrefix("192.0.2.100/32")}}}
			}
			got, err := StatusOf(t.Context(), h, kase.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			if checks := strings.HasPrefix(name, "haproxy"); checks != (len(got.Servers) == 2) {
				t.Errorf("servers: %+v", got.Servers)
			}
			got.Servers = nil
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	// A statistics page that does not answer is an error.
	kase := steptest.Case{Cluster: steptest.Cluster(t, balanced), Before: func(s *conntest.Sim) {
		packaged(s)
		for _, unit := range []string{"haproxy", "keepalived"} {
			s.AddUnit(unit+".service", "[Service]\nExecStart=/usr/sbin/"+unit+"\n", true, true)
		}
		s.HandleProgram("bash", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("bash: connect: Connection refused")}, true
		})
	}}
	if _, err := StatusOf(t.Context(), kase.NewHost(t, kase.Sim(t), Install(kase.Cluster)), kase.Cluster); err == nil {
		t.Error("no error")
	}
}
