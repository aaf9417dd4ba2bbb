package op_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestLaterRunsKeepTheFirstRecord applies a desired state and then a changed one: undoing
// the second restores the first, and a removal restores the original state.
func TestLaterRunsKeepTheFirstRecord(t *testing.T) {
	wish := func(word string, mode runner.Attr) []op.Resource {
		return []op.Resource{
			op.Dir{Path: "/etc/x", Attr: mode},
			op.Text("/etc/x/conf", text(word+"\n")),
			op.Text("/etc/systemd/system/x.service", text(unitText+"# "+word+"\n")),
			op.Unit{Name: "x.service"},
			op.Block{Path: "/etc/hosts", Body: text("192.0.2.1 " + word)},
		}
	}
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"others'": func(s *conntest.Sim) {
			own(otherUnit, true, true)(s)
			s.AddDir("/etc/x", 0o711)
			s.AddFile("/etc/x/conf", "theirs\n", 0o600)
			s.AddFile("/etc/hosts", "127.0.0.1 localhost", 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Before: before}
			s := kase.Sim(t)
			first := s.Snapshot()
			one, two := op.Ensure("x.install", wish("one", runner.Attr{Mode: 0o700})), op.Ensure("x.install", wish("two", runner.Attr{Mode: 0o750}))
			if err := one.Run(t.Context(), kase.NewHost(t, s, one)); err != nil {
				t.Fatal(err)
			}
			installed := s.Snapshot()
			h := kase.NewHost(t, s, two)
			if err := two.Run(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if err := two.Rollback(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if d := conntest.Diff(installed, s.Snapshot()); d != "" {
				t.Errorf("undoing the second run:\n%s", d)
			}
			if err := two.Run(t.Context(), kase.NewHost(t, s, two)); err != nil {
				t.Fatal(err)
			}
			remove := op.Remove("x.uninstall", wish("two", runner.Attr{Mode: 0o750}))
			if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
				t.Fatal(err)
			}
			if d := conntest.Diff(first, s.Snapshot()); d != "" {
				t.Errorf("a removal after both:\n%s", d)
			}
		})
	}
}

// TestConflicts: files of another type at the path of a resource, and damaged markers of a
// block, are errors, so that no data of others is lost.
func TestConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		r      op.Resource
	}{
		"a folder in a file's place": {func(s *conntest.Sim) { s.AddDir("/etc/x.conf", 0o755) }, op.Text("/etc/x.conf", text("a"))},
		"a file in a folder's place": {func(s *conntest.Sim) { s.AddFile("/etc/x", "a", 0o644) }, op.Dir{Path: "/etc/x"}},
		"a block without an end": {func(s *conntest.Sim) {
			s.AddFile("/etc/hosts", "a\n# BEGIN KubeXM Managed Block\nours\ntheirs\n", 0o644)
		}, op.Block{Path: "/etc/hosts", Body: text("b")}},
		"a block without a beginning": {func(s *conntest.Sim) { s.AddFile("/etc/hosts", "a\n# END KubeXM Managed Block\n", 0o644) }, op.Block{Path: "/etc/hosts", Body: text("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Before: c.before}
			s := kase.Sim(t)
			first := s.Snapshot()
			step := op.Ensure("x.install", []op.Resource{c.r})
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

// TestBlockStaysInItsPlace: lines after the block stay after it.
func TestBlockStaysInItsPlace(t *testing.T) {
	kase := steptest.Case{Before: func(s *conntest.Sim) {
		s.AddFile("/etc/hosts", "a\n# BEGIN KubeXM Managed Block\nold\n# END KubeXM Managed Block\nb\n", 0o644)
	}}
	s := kase.Sim(t)
	step := op.Ensure("x.install", []op.Resource{op.Block{Path: "/etc/hosts", Body: text("new")}})
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	if got := s.Read("/etc/hosts"); got != "a\n# BEGIN KubeXM Managed Block\nnew\n# END KubeXM Managed Block\nb\n" {
		t.Errorf("%q", got)
	}
}

// TestAFolderThatAServiceFilled: an undo keeps files that a service wrote into its own
// folder, for the next run. A removal still deletes the folder.
func TestAFolderThatAServiceFilled(t *testing.T) {
	for name, own := range map[string]bool{"its own": true, "one that others use": false} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{}
			s := kase.Sim(t)
			first := s.Snapshot()
			rs := []op.Resource{op.Dir{Path: "/data/x", Own: own}}
			install := op.Ensure("x.install", rs)
			h := kase.NewHost(t, s, install)
			if err := install.Run(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			s.AddFile("/data/x/blob", "much", 0o600)
			if err := install.Rollback(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if s.Read("/data/x/blob") == "" {
				t.Error("what was written is lost")
			}
			for _, step := range []steps.Step{install, op.Remove("x.uninstall", rs), op.Remove("forget", []op.Resource{op.Records{}})} {
				if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
					t.Fatal(err)
				}
			}
			if d := conntest.Diff(first, s.Snapshot()); (d == "") != own {
				t.Errorf("after a removal:\n%s", d)
			}
		})
	}
}
