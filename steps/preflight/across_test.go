package preflight_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// gathered are the hosts of a cluster, each with its facts on the board of one run.
type gathered struct {
	board   *steps.Board
	cluster *manifest.Cluster
	sims    map[string]*conntest.Sim
	names   []string
}

func gather(t *testing.T, c *manifest.Cluster, before map[string]func(*conntest.Machine)) *gathered {
	t.Helper()
	g := &gathered{board: &steps.Board{}, cluster: c, sims: map[string]*conntest.Sim{}}
	step := preflight.GatherFacts()
	for _, h := range c.Spec.Hosts {
		s := conntest.New(t)
		s.SetHostname(h.Name)
		s.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{h.Address + "/24"} })
		if f := before[h.Name]; f != nil {
			s.SetMachine(f)
		}
		if f := before["*"]; f != nil {
			s.SetMachine(f)
		}
		g.sims[h.Name] = s
		g.names = append(g.names, h.Name)
		if err := step.Run(t.Context(), g.host(t, h, step)); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g *gathered) host(t *testing.T, h manifest.Host, step steps.Step) *steps.Host {
	t.Helper()
	kase := steptest.Case{Cluster: g.cluster, Host: h}
	return kase.NewHost(t, g.sims[h.Name], step).WithBoard(g.board).ForStep(step.Meta())
}

// look finds what a check finds on the first host, of all: "host level: what".
func (g *gathered) look(t *testing.T, check string) []string {
	t.Helper()
	return g.lookFrom(t, g.cluster.Spec.Hosts[0], check)
}

func (g *gathered) lookFrom(t *testing.T, from manifest.Host, check string) []string {
	t.Helper()
	var got []string
	say := func(f steps.Finding) {
		if f.What == "" || f.Advice == "" || f.Check != "preflight."+check {
			t.Errorf("a finding names check, what and advice: %+v", f)
		}
		got = append(got, f.Host+" "+f.Level()+": "+f.What)
	}
	s := step(t, "preflight."+check, preflight.Options{Hosts: g.names})
	var found steps.Findings
	if err := s.Run(t.Context(), g.host(t, from, s).WithReport(say)); err != nil && !errors.As(err, &found) {
		t.Fatal(err)
	}
	for _, f := range found {
		say(f)
	}
	slices.Sort(got)
	return got
}

func TestHostsAgainstEachOther(t *testing.T) {
	type machines = map[string]func(*conntest.Machine)
	for name, c := range map[string]struct {
		check  string
		before machines
		want   string
	}{
		"four different hosts": {"duplicates", nil, ""},
		"clones": {"duplicates", machines{"w1": func(m *conntest.Machine) { m.MachineID = "77" }, "a1": func(m *conntest.Machine) { m.MachineID = "77" }},
			"a1 error: the machine id 77 is the same on w1 and a1\nw1 error: the machine id 77 is the same on w1 and a1"},
		"one product": {"duplicates", machines{"m1": func(m *conntest.Machine) { m.ProductUUID = "55" }, "r1": func(m *conntest.Machine) { m.ProductUUID = "55" }},
			"m1 warning: the product UUID 55 is the same on m1 and r1\nr1 warning: the product UUID 55 is the same on m1 and r1"},
		"one MAC": {"duplicates", machines{"m1": func(m *conntest.Machine) { m.MAC = "52:54:00:00:00:01" }, "r1": func(m *conntest.Machine) { m.MAC = "52:54:00:00:00:01" }},
			"m1 error: the MAC address 52:54:00:00:00:01 is the same on m1 and r1\nr1 error: the MAC address 52:54:00:00:00:01 is the same on m1 and r1"},
		"one MTU":            {"mtu", nil, ""},
		"another MTU":        {"mtu", machines{"w1": func(m *conntest.Machine) { m.MTU = 1450 }}, "w1 warning: the MTU is 1450; that of m1 and a1 is 1500"},
		"jumbo frames":       {"mtu", machines{"w1": func(m *conntest.Machine) { m.MTU = 9000 }}, "w1 warning: the MTU is 9000; that of m1 and a1 is 1500"},
		"two MTUs":           {"mtu", machines{"w1": func(m *conntest.Machine) { m.MTU = 9000 }, "a1": func(m *conntest.Machine) { m.MTU = 1 }}, "a1 warning: the MTU is 1; that of w1 is 9000\nm1 warning: the MTU is 1500; that of w1 is 9000"},
		"no node's MTU":      {"mtu", machines{"r1": func(m *conntest.Machine) { m.MTU = 9000 }}, ""},
		"clocks a bit apart": {"clocks", machines{"w1": func(m *conntest.Machine) { m.ClockAhead = 4 * time.Second }}, ""},
		"clocks too far apart": {"clocks", machines{"w1": func(m *conntest.Machine) { m.ClockAhead = 4 * time.Second }, "r1": func(m *conntest.Machine) { m.ClockAhead = -3 * time.Second }},
			"r1 error: the clock is 7s behind that of w1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(gather(t, steptest.Cluster(t, site), c.before).look(t, c.check), "\n"); got != c.want {
				t.Errorf("found\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestOneHostName: two machines that say the same name are given others, unless the
// config keeps it.
func TestOneHostName(t *testing.T) {
	for spec, level := range map[string]string{"": "warning", "  system: {keep: [hostname]}\n": "error"} {
		g := gather(t, steptest.Cluster(t, site+spec), nil)
		for _, h := range g.cluster.Spec.Hosts[:2] {
			g.sims[h.Name].SetHostname("localhost")
			g.sims[h.Name].SetMachine(func(m *conntest.Machine) { m.MachineID, m.ProductUUID, m.MAC = h.Name, h.Name, h.Name })
			step := preflight.GatherFacts()
			if err := step.Run(t.Context(), g.host(t, h, step)); err != nil {
				t.Fatal(err)
			}
		}
		want := fmt.Sprintf("m1 %[1]s: the host name localhost is the same on m1 and w1\nw1 %[1]s: the host name localhost is the same on m1 and w1", level)
		if got := strings.Join(g.look(t, "duplicates"), "\n"); got != want {
			t.Errorf("found\n%s\nwant\n%s", got, want)
		}
	}
}
