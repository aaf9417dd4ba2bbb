package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestTheKernelKeepsItsLaws(t *testing.T) {
	kernel := []op.Resource{
		node.Module{Name: "br_netfilter"}, node.Module{Name: "overlay"}, node.Module{Name: "never", Optional: true},
		node.Sysctl{Key: "net.bridge.bridge-nf-call-iptables", Value: "0"}, node.Sysctl{Key: "net.ipv4.ip_forward", Value: "1"},
		node.Sysctl{Key: "net.ipv4.ip_local_port_range", Value: "1024\t65000"},
	}
	for name, before := range map[string]func(*conntest.Sim){
		"bare":                nil,
		"with modules loaded": func(s *conntest.Sim) { s.SetModule("br_netfilter", "loaded"); s.SetModule("overlay", "builtin") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steptest.Ensure(t, steptest.Case{Before: before}, op.Ensure("x.install", kernel), op.Remove("x.uninstall", kernel))
		})
	}
}

// TestASettingKeepsTheFirstRecord: undoing a second value gives the first, a removal
// gives what was there before both.
func TestASettingKeepsTheFirstRecord(t *testing.T) {
	kase := steptest.Case{}
	s := kase.Sim(t)
	first := s.Snapshot()
	wish := func(value string) []op.Resource {
		return []op.Resource{node.Sysctl{Key: "vm.swappiness", Value: value}}
	}
	one, two := op.Ensure("x.set", wish("1")), op.Ensure("x.set", wish("2"))
	if err := one.Run(t.Context(), kase.NewHost(t, s, one)); err != nil {
		t.Fatal(err)
	}
	h := kase.NewHost(t, s, two)
	if err := two.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := two.Rollback(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := s.Sysctl("vm.swappiness"); got != "1" {
		t.Errorf("undoing the second value gives %s", got)
	}
	for _, step := range []steps.Step{two, op.Remove("x.set-back", wish("2"))} {
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
	}
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("a removal after both:\n%s", d)
	}
}

// TestWhatThisKernelHasNot is refused with advice, and nothing changes.
func TestWhatThisKernelHasNot(t *testing.T) {
	for name, r := range map[string]op.Resource{
		"setting": node.Sysctl{Key: "net.none.such", Value: "1"},
		"module":  node.Module{Name: "never"},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{}
			s := kase.Sim(t)
			first := s.Snapshot()
			step := op.Ensure("x.install", []op.Resource{r})
			h := kase.NewHost(t, s, step)
			err := step.Run(t.Context(), h)
			if err == nil || len(steps.Advice(err)) == 0 {
				t.Errorf("%v, advice %q", err, steps.Advice(err))
			}
			if err := step.Rollback(t.Context(), h); err != nil {
				t.Error(err)
			}
			if d := conntest.Diff(first, s.Snapshot()); d != "" {
				t.Errorf("something changed:\n%s", d)
			}
		})
	}
}
