package kubectl

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// owner is the field manager of everything that kubexm applies.
const owner = "kubexm"

// Body makes a manifest.
type Body = func(context.Context, *steps.Host) ([]byte, error)

// Manifest is a set of objects as a resource of a master.
func Manifest(name string, needs []manifest.Need, body Body) op.Manifest {
	return op.Manifest{Name: name, Kubeconfig: AdminConf, Owner: owner, Opens: needs, Body: body}
}

// Tried is for steps that speak to a cluster which is still coming up, and for
// manifests with objects of a kind that they define themselves: it takes the API
// server a moment to know it.
func Tried(m *steps.Meta) {
	m.Timeout, m.Retry = 2*time.Minute, steps.Retry{Times: 5, Wait: 3 * time.Second}
}

// Apply brings the objects of a manifest about, by server-side apply.
func Apply(name string, needs []manifest.Need, body Body) steps.Step {
	return op.Ensure(name, []op.Resource{Manifest(name, needs, body)}, Tried)
}
