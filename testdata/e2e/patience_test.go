package e2e

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// wait is a limit for something that takes longer the busier the machine is.
type wait struct {
	began time.Time
	limit time.Duration // where each process that can run has a processor
	busy  float64       // the most processes for a processor since it began
}

// mostBusy bounds how many times the limit is waited.
const mostBusy = 5

func patient(limit time.Duration) *wait { return &wait{began: time.Now(), limit: limit, busy: 1} }

// over reports whether the limit has passed, as many times as there are processes for each
// processor.
func (w *wait) over() bool {
	var average float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &average) // none is no load
	}
	w.busy = min(max(w.busy, average/float64(runtime.NumCPU())), mostBusy)
	return time.Since(w.began) > time.Duration(float64(w.limit)*w.busy)
}

func (w *wait) String() string {
	return fmt.Sprintf("%s (limit %s, %.1f processes for each processor)", time.Since(w.began).Round(time.Second), w.limit, w.busy)
}

// podsOfDNSAreBack waits until the pods of the cluster's DNS run, wherever they are by now.
func (s *labSite) podsOfDNSAreBack(t *testing.T) {
	t.Helper()
	s.podsAreBack(t, "k8s-app=kube-dns", func() []string {
		out, err := s.tryKubectl(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].spec.nodeName}")
		if err != nil {
			return nil
		}
		return strings.Fields(out)
	})
}

// podsAreBack waits until nodes that booted have the pod network, and run pods with a label.
// Other nodes send what is for a pod to its node before the pod network is back there.
func (s *labSite) podsAreBack(t *testing.T, label string, on func() []string) {
	t.Helper()
	script := "ip -o addr show cni0 | grep -q inet && crictl pods -q --state ready --label " + label + " | grep -q ."
	for wait := patient(2 * time.Minute); ; time.Sleep(time.Second) {
		nodes := slices.Compact(slices.Sorted(slices.Values(on())))
		var missing []string
		for _, node := range nodes {
			h, err := s.Host(node)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := s.SSH(t.Context(), h, lab.RootUser, script).CombinedOutput(); err != nil {
				missing = append(missing, fmt.Sprintf("%s: %s (%v)", node, strings.TrimSpace(string(out)), err))
			}
		}
		if len(nodes) > 0 && len(missing) == 0 {
			return
		}
		if wait.over() {
			for _, node := range nodes {
				h, err := s.Host(node)
				if err != nil {
					t.Fatal(err)
				}
				out, _ := s.SSH(t.Context(), h, lab.RootUser, "uptime; crictl pods; crictl ps -a; ls -l /run/flannel /etc/cni/net.d; ip -br addr; journalctl -q --no-pager -n 80 -u kubelet; journalctl -q --no-pager -n 40 -u containerd").CombinedOutput()
				t.Logf("%s:\n%s", node, out)
			}
			t.Fatalf("%s, and not back: pods %s on %q: %s", wait, label, nodes, strings.Join(missing, "; "))
		}
	}
}

// stockLimit is how long a watch of client-go's defaults is waited for.
const stockLimit = time.Minute

// stockWatchIsBack tells how long a client with client-go's own health checks of connections sees
// no writes after its server or load balancer has vanished. That is no limit of kubexm's: the
// client decides when a silent connection is dead.
func stockWatchIsBack(t *testing.T, d *drivers.Drivers, event string, since time.Time) {
	t.Helper()
	if took, back := d.StockBack(t.Context(), since, stockLimit); back {
		t.Logf("%s: a watch with client-go's own health checks shows writes again after %.1f s", event, took.Seconds())
	} else {
		t.Logf("%s: a watch with client-go's own health checks is not back within %s", event, stockLimit)
	}
}
