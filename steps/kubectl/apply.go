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

// Body returns a manifest.
type Body = func(context.Context, *steps.Host) ([]byte, error)

// Manifest returns the objects of a manifest as a resource of a master.
func Manifest(name string, needs []manifest.Need, body Body) op.Manifest {
	return op.Manifest{Name: name, Kubeconfig: AdminConf, Owner: owner, Opens: needs, Body: body}
}

// WithRetries sets timeout and retries for steps that send requests to a starting cluster, and
// for manifests with custom resources that they define themselves: the API server needs a
// moment to serve a new kind.
func WithRetries(m *steps.Meta) {
	m.Timeout, m.Retry = 2*time.Minute, steps.Retry{Times: 5, Wait: 3 * time.Second}
}

// Apply returns a step that applies a manifest with server-side apply.
func Apply(name string, needs []manifest.Need, body Body) steps.Step {
	return op.Ensure(name, []op.Resource{Manifest(name, needs, body)}, WithRetries)
}
