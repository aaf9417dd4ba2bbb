package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// A phase of an installation is what comes before a step begins. These are as
// testdata/by-hand.sh has them, as far as one can be told from the other: kubexm
// brings files, runtime and images side by side.
var phases = []struct {
	name   string
	by     []string // what they are called by hand
	before string   // the step that the next one begins with; "" is the end
}{
	{name: "hosts prepared", by: []string{"files", "runtime", "images"}, before: "kubeadm.init"},
	{name: "control plane", by: []string{"init"}, before: "kubeadm.mint-token"},
	{name: "joined and ready", by: []string{"join", "ready"}},
}

// TestPhases makes the same cluster with kubexm and by hand, each on new hosts, and
// tells how long the phases took. It holds kubexm to no figure: the machine decides.
func TestPhases(t *testing.T) {
	dir := t.TempDir()
	var ours, second, deleted map[string]time.Duration
	var bundle string
	t.Run("kubexm", func(t *testing.T) {
		s := newPhasesSite(t, dir)
		bundle = s.bundle
		args := []string{"install", "--bundle", s.bundle, "--allow-unsigned", "-f", filepath.Join(s.dir, "config.yaml")}
		c := s.recorded(t, args...)
		ours = c.phases(t)
		t.Logf("steps of a second and more, from when to when:\n%s", c.longSteps())
		nodes := strings.Fields(s.kubectl(t, "get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].spec.nodeName}"))
		if len(nodes) != 2 || nodes[0] == nodes[1] {
			t.Errorf("CoreDNS runs on %q, want two nodes", nodes)
		}
		second = map[string]time.Duration{"all": s.recorded(t, args...).length}
		deleted = map[string]time.Duration{"all": s.recorded(t, "delete", "cluster", "-f", args[len(args)-1], "--yes").length}
	})
	if t.Failed() || bundle == "" {
		return
	}
	var theirs map[string]time.Duration
	t.Run("by hand", func(t *testing.T) { theirs = byHand(t, dir, bundle) })
	if t.Failed() {
		return
	}
	table := fmt.Sprintf("%-20s %10s %10s %8s\n", "", "kubexm", "by hand", "ratio")
	row := func(name string, ours, theirs time.Duration) {
		table += fmt.Sprintf("%-20s %9.1fs %9.1fs %8.2f\n", name, ours.Seconds(), theirs.Seconds(), ours.Seconds()/theirs.Seconds())
	}
	var all time.Duration
	for _, p := range phases {
		var hand time.Duration
		for _, name := range p.by {
			hand += theirs[name]
		}
		all += hand
		row(p.name, ours[p.name], hand)
	}
	row("all", ours["all"], all)
	t.Logf("\n%s%-20s %9.1fs\n%-20s %9.1fs", table, "a second install", second["all"].Seconds(), "delete", deleted["all"].Seconds())
}

// newPhasesSite has a registry host, a master and two workers, and a bundle in dir.
func newPhasesSite(t *testing.T, dir string) *labSite {
	t.Helper()
	l := lab.Start(t, 4)
	l.Inside(netip.MustParsePrefix("10.204.0.0/20"))
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/phases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: dir, cache: cache, config: l.Config(string(text))}
	s.write(t, "config.yaml", s.config)
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s
}

// phases gives how long each phase of a creation took.
func (c course) phases(t *testing.T) map[string]time.Duration {
	t.Helper()
	took := map[string]time.Duration{"all": c.length}
	from := c.began
	for _, p := range phases {
		to := c.began.Add(c.length)
		if p.before != "" {
			to = c.start(t, p.before)
		}
		took[p.name] = to.Sub(from)
		from = to
	}
	return took
}

// longSteps tells which steps took a second or more, in the order in which they began.
func (c course) longSteps() string {
	var out strings.Builder
	for _, s := range c.starts {
		for _, e := range c.ends {
			if e.Step == s.Step && e.Host == s.Host && e.Time.Sub(s.Time) >= time.Second {
				fmt.Fprintf(&out, "%5.1f %5.1f  %-6s %s\n", s.Time.Sub(c.began).Seconds(), e.Time.Sub(c.began).Seconds(), e.Host, e.Step)
			}
		}
	}
	return out.String()
}

// start is when a step began first.
func (c course) start(t *testing.T, step string) time.Time {
	t.Helper()
	for _, e := range c.starts {
		if e.Step == step {
			return e.Time
		}
	}
	t.Fatalf("there was no %s", step)
	return time.Time{}
}

// byHand makes a cluster on new hosts with what a bundle holds.
func byHand(t *testing.T, dir, bundle string) map[string]time.Duration {
	t.Helper()
	l := lab.Start(t, 4)
	l.Inside(netip.MustParsePrefix("10.204.0.0/20"))
	up := &site{dir: dir}
	files, images, out := filepath.Join(dir, "files"), filepath.Join(dir, "images"), t.TempDir()
	up.must(t, "bundle", "extract", "--allow-unsigned", bundle, "--files", files)
	up.must(t, "bundle", "extract", "--allow-unsigned", bundle, "--oci", images)
	cmd := l.Workdir().Command(t.Context(), "bash", "testdata/by-hand.sh", l.Hosts[1].Address, l.Hosts[2].Address, l.Hosts[3].Address)
	cmd.Env = append(os.Environ(), "FILES="+files, "IMAGES="+images, "OUT="+out, "KEY="+l.Key(), "VERSION=v1.32.2",
		"PODS=10.244.0.0/16", "SERVICES=10.204.0.0/20")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(out, "*.log"))
		for _, log := range logs {
			said, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), said)
		}
		t.Fatalf("by hand: %v\n%s%s", err, text, errs.String())
	}
	took := map[string]time.Duration{}
	for line := range strings.Lines(string(text)) {
		seconds, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(seconds, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		took[name] = time.Duration(n * float64(time.Second))
	}
	t.Logf("by hand:\n%s", text)
	return took
}
