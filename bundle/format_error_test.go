package bundle

import (
	"errors"
	"strings"
	"testing"
)

// TestNewerRootIsReported, as what another version of kubexm reads.
func TestNewerRootIsReported(t *testing.T) {
	for artifactType, later := range map[string]bool{"application/vnd.kubexm.bundle.v2": true, TypeRoot: false, "": false, "application/vnd.example.v2": false} {
		err := rootError(artifactType)
		e, ok := errors.AsType[*FormatError](err)
		if !ok || (e.Advice != "") != later || strings.Contains(err.Error(), "this version of kubexm reads v1") != later {
			t.Errorf("%s: %v", artifactType, err)
		}
	}
}
