package op_test

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestFilesAreComparedTogether: consecutive files of a list take one command, regardless of
// their number.
func TestFilesAreComparedTogether(t *testing.T) {
	blob := func(name string) op.Resource {
		return op.Blob{Path: "/usr/local/bin/" + name, Need: manifest.Need{Kind: manifest.Binary, Name: name}}
	}
	c := steptest.Case{}
	s := c.Sim(t)
	step := op.Ensure("x.install", []op.Resource{blob("x"), blob("y"), blob("z"), op.Dir{Path: "/etc/x"}, blob("w")})
	h := c.NewHost(t, s, step)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.ForgetCalls()
	if v, err := step.Precheck(t.Context(), h); err != nil || v != steps.Done {
		t.Fatalf("%v, %v", v, err)
	}
	looks := 0
	for _, call := range s.Calls() {
		if call.Verb == connector.VerbCompare {
			looks++
		}
	}
	if looks != 2 {
		t.Errorf("%d looks at two runs of files", looks)
	}
}
