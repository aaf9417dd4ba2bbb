package loadbalancer

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestKubeVIPStatus(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, x := range map[string]struct {
		lease    string
		exit     int
		vip, pod bool
		want     Status
		err      string
	}{
		"it holds the address":  {lease: `{"spec":{"holderIdentity":"m1","acquireTime":"2026-03-04T05:06:07.800900Z"}}`, vip: true, pod: true, want: Status{Holds: true, Since: at}},
		"another one holds it":  {lease: `{"spec":{"holderIdentity":"m2","acquireTime":"2026-03-04T05:06:07.800900Z"}}`, pod: true},
		"nobody has the lease":  {pod: true},
		"no API server answers": {exit: 1, pod: true},
		"it does not run":       {want: Status{Stopped: []string{"kube-vip"}}},
		"a damaged answer":      {lease: "{", pod: true, err: "lease plndr-cp-lock"},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, withKubeVIP)
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				s.AddFile(kubeVIPConf, "conf\n", 0o600)
				s.HandleProgram("crictl", func(cmd connector.Cmd, _ []byte) (connector.Result, bool) {
					switch {
					case !x.pod:
						return connector.Result{Stdout: []byte(`{"items":[]}`)}, true
					case cmd.Argv[1] == "ps":
						return connector.Result{Stdout: []byte("container\n")}, true
					}
					return connector.Result{Stdout: []byte(`{"items":[{"id":"pod","annotations":{"` + kubeVIPDigest + `":"` + digestOf([]byte("conf\n")) + `"}}]}`)}, true
				})
				s.HandleProgram("kubectl", func(cmd connector.Cmd, _ []byte) (connector.Result, bool) {
					if !strings.Contains(strings.Join(cmd.Argv, " "), "--server=https://192.0.2.11:6443 ") {
						t.Errorf("%q", cmd.Argv)
					}
					return connector.Result{Exit: x.exit, Stdout: []byte(x.lease)}, true
				})
			}}
			h := kase.NewHost(t, kase.Sim(t), UninstallKubeVIP(c))
			if h.Facts.Interfaces = nil; x.vip {
				h.Facts.Interfaces = []runner.Interface{{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24"), netip.MustParsePrefix("192.0.2.100/32")}}}
			}
			got, err := KubeVIPStatusOf(t.Context(), h, c)
			if x.err != "" {
				if err == nil || !strings.Contains(err.Error(), x.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if d := cmp.Diff(x.want, got); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}
