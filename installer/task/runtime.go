package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/runtime"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

// CheckRegistry checks on an existing registry whether the nodes may pull from it, and whether
// kubexm may push to it.
func CheckRegistry() plan.Task {
	return plan.Task{Name: "check-registry", When: registryStands, Plan: func(s plan.Scope) plan.Fragment {
		return plan.Par(
			plan.On(nodes(s), s.Checks(registryd.CheckPull(s.Want))...),
			plan.On(s.Lead(), s.Checks(registryd.CheckPush(s.Want))...),
		)
	}}
}

// InstallRegistry installs the site's registry on its host and fills it. An existing registry
// is filled from this machine, or through the lead.
func InstallRegistry() plan.Task {
	return plan.Task{Name: "install-registry", When: hasRegistry, Plan: func(s plan.Scope) plan.Fragment {
		seed := registryd.Seed(s.Want, imageNeeds(s.Want))
		if registryd.UsesExisting(s.Want) {
			return plan.On(s.Lead(), seed)
		}
		return plan.On(s.Role(manifest.RoleRegistry), registryd.Install(s.Want), seed)
	}}
}

// UninstallRegistry is its inverse; images may be preserved for the next cluster. The content
// of an existing registry stays.
func UninstallRegistry() plan.Task {
	return plan.Task{Name: "uninstall-registry", When: hasRegistry, Plan: func(s plan.Scope) plan.Fragment {
		if registryd.UsesExisting(s.Want) {
			return plan.On(s.InitialMaster(), registryd.ForgetDigests(), registryd.ReportRemaining(s.Want))
		}
		return plan.On(s.Role(manifest.RoleRegistry), registryd.Uninstall(s.Want, preserves(s)))
	}}
}

func hasRegistry(s plan.Scope) bool { return part.RegistryOf(s.Want).Kind != part.NoRegistry }

func registryStands(s plan.Scope) bool { return registryd.UsesExisting(s.Want) }

// InstallRuntime installs the programs of the container runtime on every node.
func InstallRuntime() plan.Task {
	return plan.Task{Name: "install-runtime", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(nodes(s), runtime.Of(s.Want).Install)
	}}
}

// StartRuntime configures and starts the container runtime on every node. It needs no registry
// and runs while that is being filled.
func StartRuntime() plan.Task {
	return plan.Task{Name: "start-runtime", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(nodes(s), runtime.Of(s.Want).Start(mirrors(s.Want)))
	}}
}

// PreloadImages pulls and pins the images that the nodes will run. Without a registry, this
// machine sends all images of the bundle to the nodes.
func PreloadImages() plan.Task {
	return plan.Task{Name: "preload-images", Plan: func(s plan.Scope) plan.Fragment {
		if !hasRegistry(s) {
			return plan.On(nodes(s), runtime.Of(s.Want).Import(imageNeeds(s.Want)))
		}
		return plan.On(nodes(s), runtime.Of(s.Want).Preload(imageNames(s.Want), registryd.NamesAt(s.Want), registryd.TagsAt(s.Want)))
	}}
}

// UninstallRuntime is the inverse of InstallRuntime and StartRuntime, with all images unless they are
// preserved.
func UninstallRuntime() plan.Task {
	return plan.Task{Name: "uninstall-runtime", Plan: func(s plan.Scope) plan.Fragment {
		engine := runtime.Of(s.Want)
		return plan.On(nodes(s), engine.Stop(mirrors(s.Want), preserves(s)), engine.Remove)
	}}
}

// mirrors redirects every pull to the site's registry.
func mirrors(c *manifest.Cluster) *cri.Mirrors {
	if part.RegistryOf(c).Kind == part.NoRegistry {
		return nil
	}
	own := registryd.ForNodes(c)
	return &cri.Mirrors{
		Mapper: registryd.MapperOf(c), Upstreams: upstreams(c),
		Certs: own.Certs, Login: own.Login, PlainHTTP: own.PlainHTTP, Insecure: own.Insecure,
	}
}

// upstreams returns the registries that images come from: those of the matrix, and those of
// the images that the config adds.
func upstreams(c *manifest.Cluster) []string {
	all := []string{"docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.k8s.io"}
	var added []string
	for _, im := range c.Spec.Bundle.Images {
		added = append(added, im.Reference)
	}
	all = append(all, cri.Upstreams(added)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// imageNames returns the images of the cluster's components.
func imageNames(c *manifest.Cluster) []string {
	names := []string{"pause", "coredns", "kube-proxy", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if p := part.EndpointOf(c).OnNodes; p != "" {
		names = append(names, string(p))
	}
	if part.EndpointOf(c).Front == part.KubeVIPFront {
		names = append(names, "kube-vip")
	}
	if part.HasMultus(c) {
		names = append(names, part.Multus)
	}
	if part.HasNodeCache(c) {
		names = append(names, part.NodeCache)
	}
	return slices.Concat(names, part.StoreOf(c).Images, part.NetworkOf(c).Images)
}

// imageNeeds returns what the site's registry has to contain, or the nodes of a site without
// one: the images of the components and of the add-ons, and those that the config adds. All
// images of the bundle are sent to it.
func imageNeeds(c *manifest.Cluster) []manifest.Need {
	var out []manifest.Need
	for _, n := range imageNames(c) {
		out = append(out, manifest.Need{Kind: manifest.Image, Name: n})
	}
	for _, a := range part.Addons(c) {
		out = append(out, manifest.ImagesOf(a.Name))
	}
	if chart, ok := part.NetworkChart(c); ok {
		out = append(out, manifest.ImagesOf(chart.Name))
	}
	for _, im := range c.Spec.Bundle.Images {
		out = append(out, manifest.Need{Kind: manifest.Image, Name: im.Reference})
	}
	return out
}
