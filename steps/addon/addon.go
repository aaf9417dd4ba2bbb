package addon

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// content is the content of an add-on: a manifest's objects, or a chart's release.
type content interface {
	op.Resource
	Forget(ctx context.Context, h *steps.Host) error
}

// resource returns an add-on's manifest or chart. It is recorded under the add-on's name, so
// that a removal needs only that. at returns the images' digests in the site's registry; nil
// means upstream's digests.
func resource(a manifest.Addon, at Names) content {
	if a.Form() == manifest.Chart {
		return Release(a, at)
	}
	if part.HasOwnManifest(a) {
		return kubectl.Manifest("add-on "+a.Name, ownNeeds(a.Name), ownManifest(a.Name))
	}
	need := manifest.Need{Kind: manifest.File, Name: a.Name}
	return kubectl.Manifest("add-on "+a.Name, []manifest.Need{need, manifest.ImagesOf(a.Name)}, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		m, err := at.of(h)
		if err != nil {
			return nil, err
		}
		text, err := h.ReadArtifact(ctx, need)
		if err != nil {
			return nil, err
		}
		text, err = admitted(a, text)
		return m.Redigest(text), err
	})
}

// Release returns the release of an add-on's chart.
func Release(a manifest.Addon, at Names) op.Chart {
	return op.Chart{
		Release: a.Name, Namespace: a.In(), Kubeconfig: kubectl.AdminConf, Timeout: ready,
		Archive: manifest.Need{Kind: manifest.Chart, Name: a.Name}, Opens: []manifest.Need{manifest.ImagesOf(a.Name)},
		Values: func(context.Context, *steps.Host) ([]byte, error) { return a.ValuesText() },
		Replace: func(_ context.Context, h *steps.Host) (map[string]string, error) {
			m, err := at.of(h)
			if err != nil || len(m.Digests) == 0 {
				return nil, err
			}
			return m.DigestReplacements(h.Artifacts.Images()), nil
		},
	}
}

// Names returns the mapping of images to their names in the site's registry.
type Names func(*steps.Host) (registry.Mapper, error)

func (n Names) of(h *steps.Host) (registry.Mapper, error) {
	if n == nil {
		return registry.Mapper{}, nil
	}
	return n(h)
}

// ready is how long helm waits until all resources of a chart are ready.
const ready = 5 * time.Minute

func helm() []op.Resource {
	return []op.Resource{op.Blob{Path: "/usr/local/bin/helm", Need: manifest.Need{Kind: manifest.Binary, Name: "helm/helm"}}}
}

// InstallHelm installs helm on a master.
func InstallHelm() steps.Step { return op.Ensure("addon.install-helm", helm(), op.Upload) }

// RemoveHelm removes helm from a master.
func RemoveHelm() steps.Step { return op.Remove("addon.remove-helm", helm()) }

// Install applies an add-on's manifest, or installs its chart with helm. Helm waits until all
// resources of the chart are ready; a manifest is followed by a separate wait.
func Install(a manifest.Addon, at Names) steps.Step {
	tried := kubectl.WithRetries
	if a.Form() == manifest.Chart {
		tried = func(m *steps.Meta) {
			m.Timeout, m.Retry = 2*ready+time.Minute, steps.Retry{Times: 1, Wait: 10 * time.Second}
		}
	}
	return op.Ensure("addon.install-"+label(a), []op.Resource{resource(a, at)}, tried)
}

// label returns a unique name for an add-on: two of the same name may be in different
// namespaces.
func label(a manifest.Addon) string {
	if a.Namespace == "" || a.Namespace == a.Name {
		return a.Name
	}
	return a.Name + "-in-" + a.Namespace
}

// Wait waits until all workloads of an add-on's manifest are ready.
func Wait(a manifest.Addon) steps.Step {
	if part.HasOwnManifest(a) {
		return kubectl.WaitFor("addon.wait-"+label(a), ownNeeds(a.Name), ownManifest(a.Name))
	}
	need := manifest.Need{Kind: manifest.File, Name: a.Name}
	return kubectl.WaitFor("addon.wait-"+label(a), []manifest.Need{need}, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		return h.ReadArtifact(ctx, need)
	})
}

// removal is the timeout for the removal of an add-on before its cluster is deleted.
const removal = 3 * time.Minute

// Remove deletes an add-on's objects before its cluster is deleted, so that its controllers
// can release resources outside of the cluster, such as volumes or addresses. A failure is
// logged and ignored, because the deletion of the cluster removes the objects too.
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
				h.Log.WarnContext(ctx, "the add-on was not removed; it is deleted with the cluster", "addon", a.Name, "err", err)
			}
			return resource(a, nil).Forget(ctx, h)
		},
	}
}
