package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestAModuleIsUnloadedOrStaysForAReason: one that is in use stays, and is no
// matter of kubexm's any more; where modprobe was killed the next run tries again.
func TestAModuleIsUnloadedOrStaysForAReason(t *testing.T) {
	for _, c := range []struct {
		name      string
		exit      int
		fails     bool
		afterward string
	}{{"in use", 1, false, "loaded"}, {"killed", 137, true, "available"}} {
		t.Run(c.name, func(t *testing.T) {
			kase := steptest.Case{}
			s := conntest.New(t)
			install, remove := op.Ensure("x.load", []op.Resource{node.Module{Name: "dummy"}}), op.Remove("x.unload", []op.Resource{node.Module{Name: "dummy"}})
			if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
				t.Fatal(err)
			}
			once := false
			s.Handle(func(cmd connector.Cmd) bool { return cmd.Verb == connector.VerbRmmod }, func(connector.Cmd, []byte) (connector.Result, bool) {
				answered := once
				once = true
				return connector.Result{Exit: c.exit}, !answered
			})
			if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); (err != nil) != c.fails {
				t.Fatalf("%v", err)
			}
			h := kase.NewHost(t, s, remove)
			v, err := remove.Precheck(t.Context(), h)
			if err == nil && v == steps.Todo {
				err = remove.Run(t.Context(), h)
			}
			if got := s.Module("dummy"); err != nil || got != c.afterward {
				t.Errorf("%v, the module is %s", err, got)
			}
		})
	}
}
