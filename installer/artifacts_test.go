package installer

import (
	"testing"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// TestImagesOfALook: who looks at hosts without a plan gets the images of the set alone.
func TestImagesOfALook(t *testing.T) {
	t.Parallel()
	lock := &manifest.Lock{Images: []manifest.ImagePin{{Reference: "pause", Sets: []string{"v1.33.1", "v1.34.0"}}, {Reference: "flannel", Sets: []string{"v1.34.0"}}}}
	a := artifacts{bundle: &bundle.Bundle{Lock: lock}, set: "v1.33.1"}
	if got := a.Images(); len(got) != 1 || got[0].Reference != "pause" {
		t.Errorf("the images are %v", got)
	}
	a.sets = func() []string { return []string{"v1.34.0"} }
	if got := a.Images(); len(got) != 2 {
		t.Errorf("with a plan of two sets they are %v", got)
	}
}
