package addon

import (
	"context"
	"io"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// brought is what an add-on brings: a manifest's objects, or a chart's release.
type brought interface {
	op.Resource
	Forget(ctx context.Context, h *steps.Host) error
}

// resource is an add-on's manifest or chart. It is remembered by the add-on's
// name, so that a removal finds it by that alone. at gives its images the digests
// that the site's registry has; nil is upstream's.
func resource(a manifest.Addon, at Names) brought {
	if a.Form() == manifest.Chart {
		return op.Chart{
			Release: a.Name, Namespace: a.In(), Kubeconfig: kubectl.AdminConf, Timeout: ready,
			Archive: manifest.Need{Kind: manifest.Chart, Name: a.Name}, Opens: []manifest.Need{manifest.ImagesOf(a.Name)},
			Values: func(context.Context, *steps.Host) ([]byte, error) { return a.ValuesText() },
			Replace: func(_ context.Context, h *steps.Host) (map[string]string, error) {
				m, err := at.of(h)
				if err != nil || len(m.Digests) == 0 {
					return nil, err
				}
				return m.Words(h.Artifacts.Images()), nil
			},
		}
	}
	need := manifest.Need{Kind: manifest.File, Name: a.Name}
	return kubectl.Manifest("add-on "+a.Name, []manifest.Need{need, manifest.ImagesOf(a.Name)}, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		m, err := at.of(h)
		if err != nil {
			return nil, err
		}
		text, err := read(ctx, h, need)
		if err != nil {
			return nil, err
		}
		text, err = admitted(a, text)
		return m.Redigest(text), err
	})
}

// Names gives images their names at the site.
type Names func(*steps.Host) (registry.Mapper, error)

func (n Names) of(h *steps.Host) (registry.Mapper, error) {
	if n == nil {
		return registry.Mapper{}, nil
	}
	return n(h)
}

// ready is how long helm waits until all of a chart is.
const ready = 5 * time.Minute

func helm() []op.Resource {
	return []op.Resource{op.Blob{Path: "/usr/local/bin/helm", Need: manifest.Need{Kind: manifest.Binary, Name: "helm/helm"}}}
}

// InstallHelm brings helm to a master.
func InstallHelm() steps.Step { return op.Ensure("addon.install-helm", helm(), op.Upload) }

// RemoveHelm is its inverse.
func RemoveHelm() steps.Step { return op.Remove("addon.remove-helm", helm()) }

func read(ctx context.Context, h *steps.Host, need manifest.Need) ([]byte, error) {
	rc, _, err := h.Artifact(ctx, need)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

// Install applies an add-on's manifest, or installs its chart. Helm waits until
// all of a chart is ready; after a manifest comes Wait.
func Install(a manifest.Addon, at Names) steps.Step {
	tried := kubectl.Tried
	if a.Form() == manifest.Chart {
		tried = func(m *steps.Meta) {
			m.Timeout, m.Retry = 2*ready+time.Minute, steps.Retry{Times: 1, Wait: 10 * time.Second}
		}
	}
	return op.Ensure("addon.install-"+label(a), []op.Resource{resource(a, at)}, tried)
}

// label tells two add-ons of one name apart, which lie in two namespaces.
func label(a manifest.Addon) string {
	if a.Namespace == "" || a.Namespace == a.Name {
		return a.Name
	}
	return a.Name + "-in-" + a.Namespace
}

// Wait waits until everything that an add-on's manifest runs is ready.
func Wait(a manifest.Addon) steps.Step {
	need := manifest.Need{Kind: manifest.File, Name: a.Name}
	return kubectl.WaitFor("addon.wait-"+label(a), []manifest.Need{need}, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		return read(ctx, h, need)
	})
}

// removal is how long taking an add-on out of a cluster that goes away may take.
const removal = 3 * time.Minute

// Remove deletes what an add-on brought, best effort: the cluster goes away, and
// all that is in it. An add-on may hold something outside, as a volume or an
// address, that its own programs give back while they run.
func Remove(a manifest.Addon) steps.Step {
	list := op.Remove("addon.remove-"+label(a), []op.Resource{resource(a, nil)})
	return &op.Do{
		M: steps.Meta{Name: list.Meta().Name, Timeout: removal + time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			v, err := list.Precheck(ctx, h)
			return v == steps.Done, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			runs, err := controlplane.Running(ctx, h)
			if err != nil {
				return err
			}
			if runs {
				within, cancel := context.WithTimeout(ctx, removal)
				defer cancel()
				err := list.Run(within, h)
				if err == nil || ctx.Err() != nil || !runner.Refused(err) && within.Err() == nil {
					return err
				}
				h.Log.WarnContext(ctx, "the add-on goes with its cluster", "addon", a.Name, "err", err)
			}
			return resource(a, nil).Forget(ctx, h)
		},
	}
}
