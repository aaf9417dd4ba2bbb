package op_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestRemainingRecordsStay: the last step of a removal reports the resources that the
// removal skipped, and keeps their records.
func TestRemainingRecordsStay(t *testing.T) {
	kase := steptest.Case{}
	s := kase.Sim(t)
	first := s.Snapshot()
	here := []op.Resource{op.Dir{Path: "/srv/etcd", Own: true}, op.Dir{Path: "/srv/images", Own: true}}
	forget := op.Remove("forget", []op.Resource{op.Records{}})
	install := op.Ensure("x.install", here)
	if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	partly := op.Remove("x.uninstall", here[1:])
	if err := partly.Run(t.Context(), kase.NewHost(t, s, partly)); err != nil {
		t.Fatal(err)
	}
	err := forget.Run(t.Context(), kase.NewHost(t, s, forget))
	var left *op.LeftError
	if !errors.As(err, &left) || !slices.Equal(left.What, []string{"folder /srv/etcd"}) {
		t.Errorf("%v", err)
	}
	for _, step := range []string{"x.uninstall", "forget"} {
		rs := here
		if step == "forget" {
			rs = []op.Resource{op.Records{}}
		}
		whole := op.Remove(step, rs)
		if err := whole.Run(t.Context(), kase.NewHost(t, s, whole)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Snapshot(); !slices.Equal(first, got) {
		t.Errorf("the host is %v, and was %v", got, first)
	}
}
