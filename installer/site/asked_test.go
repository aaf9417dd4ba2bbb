package site

import (
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestWhatAPlanDestroysIsAsked: also where the pipeline does not say so itself.
func TestWhatAPlanDestroysIsAsked(t *testing.T) {
	for risk, want := range map[steps.Risk]string{steps.Destroys: "p of cluster demo deletes data that cannot be recovered: x.wipe", steps.Disruptive: ""} {
		p := plan.Pipeline{Name: "p", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
			return plan.On(s.Hosts(), &op.Do{M: steps.Meta{Name: "x.wipe", Risk: risk}})
		}})}}}
		c := steptest.Cluster(t, steptest.Small)
		g, err := plan.Build(p, plan.Scope{Want: c})
		if err != nil {
			t.Fatal(err)
		}
		err = (&Site{Request: Request{Pipeline: p, Options: installer.Options{Cluster: c}}, Graph: g}).Confirm()
		refused, ok := errors.AsType[*refusal.Error](err)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", risk, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !ok || refused.Kind != refusal.Usage):
			t.Errorf("%s: %v", risk, err)
		}
	}
}
