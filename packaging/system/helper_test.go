package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// same wants two artifacts to be equal.
func same(t *testing.T, want, have manifest.Artifact) {
	t.Helper()
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}
