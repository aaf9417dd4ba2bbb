package images

import (
	"testing"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// TestAskedFor: a component is built for an image of its own version, and for no other one.
func TestAskedFor(t *testing.T) {
	rows, err := components.Asked()
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]int{"ghcr.io/kube-vip/kube-vip:v1.2.3": 1, "ghcr.io/kube-vip/kube-vip:v1.0.0": 0, "docker.io/calico/node:v3.28.5": 1, "registry.k8s.io/pause:3.10": 0} {
		got, err := AskedFor(rows, []string{"docker.io/library/other:1", reference})
		if err != nil || len(got) != want {
			t.Errorf("%s: %+v, %v", reference, got, err)
		}
	}
	if _, err := AskedFor(nil, nil); err == nil {
		t.Error("a recipe without a component is no error")
	}
}
