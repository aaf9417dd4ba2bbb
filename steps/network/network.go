package network

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// Plugin is a pod network plugin.
type Plugin struct {
	Install     []steps.Step // run on a master; nil without a plugin, or if kubexm cannot install it yet
	Wait        []steps.Step // run on a master when all nodes have joined
	Tools       []steps.Step // run on each master
	RemoveTools []steps.Step // the inverse of Tools
}

// apply returns a step that applies the bundle's manifest of a plugin, as edit changes it for the config.
func apply(c *manifest.Cluster, step, plugin string, edit func(*manifest.Cluster, []byte) ([]byte, error)) steps.Step {
	need := manifest.Need{Kind: manifest.File, Name: plugin}
	needs := []manifest.Need{need}
	for _, image := range part.NetworkOf(c).Images {
		needs = append(needs, manifest.Need{Kind: manifest.Image, Name: image})
	}
	return kubectl.Apply(step, needs, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		text, err := h.ReadArtifact(ctx, need)
		if err != nil {
			return nil, err
		}
		return edit(c, text)
	})
}

// wait returns a step that waits until what the bundle's manifest of a plugin runs is ready.
func wait(step, plugin string) steps.Step {
	need := manifest.Need{Kind: manifest.File, Name: plugin}
	return kubectl.WaitFor(step, []manifest.Need{need}, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		return h.ReadArtifact(ctx, need)
	})
}

// Of returns the pod network plugin of a config. at returns the images' digests in the site's registry,
// for Install.
func Of(c *manifest.Cluster, at addon.Names) Plugin {
	switch part.NetworkOf(c).Name {
	case "flannel":
		return Plugin{Install: []steps.Step{Flannel(c)}, Wait: []steps.Step{WaitFlannel()}}
	case "cilium":
		return Plugin{Install: []steps.Step{Cilium(c, at)}, Wait: []steps.Step{WaitCilium(c)}}
	case "calico":
		return Plugin{
			Install: []steps.Step{Calico(c)}, Wait: []steps.Step{WaitCalico()},
			Tools: []steps.Step{InstallCalicoctl()}, RemoveTools: []steps.Step{RemoveCalicoctl()},
		}
	}
	return Plugin{}
}
