package installer_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
)

var largeRecord = flag.Bool("record", true, "whether TestLargeSite keeps an audit log, to see what that costs")

var largeHosts = flag.Int("hosts", 0, "how many hosts TestLargeSite has; make bench gives it a thousand")

// largeRun is what TestLargeSite prints of a run.
type largeRun struct {
	Seconds float64
	CPU     float64 // seconds of it
	Heap    uint64  // live bytes after it, the simulated hosts' own among them
	Ran     int     // steps on hosts
	Looked  int     // that were done already, or only look
	Lines   int64   // of the audit log so far
}

// TestLargeSite makes a cluster of many simulated hosts and asks for it again:
// what a run costs grows with its hosts and no faster, and the second run does
// nothing. make bench prints what it took.
func TestLargeSite(t *testing.T) {
	n := *largeHosts
	if n == 0 {
		n = 12
	}
	s := siteOf(t, fmt.Sprintf(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: r1, address: 192.0.2.10}
    - {name: m1, address: 192.0.2.11}
%s  ssh: {user: root, password: secret}
  roleGroups: {registry: [r1], master: [m1], worker: ['w[1:%d]']}
  kubernetes: {version: v1.35.1}
  etcd: {type: kubeadm}
  network: {plugin: flannel, kubePodsCIDR: 10.64.0.0/10}
`, workersOf(n-2), n-2), "")
	s.Parallel = max(8, n/4) // joins wait by the clock: a run of few at once is a measure of that
	if *largeRecord {
		s.record()
	}
	var runs [2]largeRun
	for i := range runs {
		begin, before := time.Now(), processorTime(t)
		s.Must(pipeline.Create, "create")
		if s.Log != nil {
			runs[i].Lines = s.Log.Head().Lines
		}
		runs[i].Seconds, runs[i].CPU = time.Since(begin).Seconds(), (processorTime(t) - before).Seconds()
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		runs[i].Heap = mem.HeapAlloc
		for _, e := range s.Events {
			switch e.Outcome {
			case engine.Ran:
				runs[i].Ran++
			case engine.Skipped, engine.Checked:
				runs[i].Looked++
			}
		}
	}
	if runs[0].Ran < 5*n || runs[1].Ran > 0 || runs[1].Looked < runs[0].Ran {
		t.Errorf("first %+v, second %+v", runs[0], runs[1])
	}
	if *largeHosts > 0 {
		if err := json.NewEncoder(os.Stdout).Encode(runs); err != nil {
			t.Error(err)
		}
	}
}

// processorTime is what this process took of the processors so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// workersOf writes the lines of so many workers.
func workersOf(n int) (lines string) {
	for i := range n {
		lines += fmt.Sprintf("    - {name: w%d, address: 198.18.%d.%d}\n", i+1, i/250, i%250+1)
	}
	return lines
}
