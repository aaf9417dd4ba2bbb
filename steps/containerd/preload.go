package containerd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// pinned keeps the kubelet from collecting an image.
const pinned = "io.cri-containerd.pinned=pinned"

// controlPlane are the images that run on masters alone.
var controlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}

// Preload pulls the images that a node will run before anything asks for them,
// and pins them: a node that lost its registry still starts. at gives images the
// digests that the site's registry has; nil is upstream's.
func Preload(c *manifest.Cluster, names []string, at func(*steps.Host) (registry.Mapper, error)) steps.Step {
	var needs []manifest.Need
	for _, n := range names {
		needs = append(needs, manifest.Need{Kind: manifest.Image, Name: n})
	}
	return &op.Do{
		M: steps.Meta{Name: "containerd.preload-images", Needs: needs, Timeout: 30 * time.Minute, Retry: steps.Retry{Times: 2, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			missing, err := missingImages(ctx, h, c, needs, at)
			return err == nil && len(missing) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			missing, err := missingImages(ctx, h, c, needs, at)
			if err != nil {
				return err
			}
			return bring(ctx, h, c, missing)
		},
	}
}

// bring pulls images, and pins them once the disk has taken all that they were
// unpacked to. containerd does not wait for that: after a loss of power it holds
// images for whole whose files are empty, and never unpacks them again. So an image
// that is there without the label is taken away first.
func bring(ctx context.Context, h *steps.Host, c *manifest.Cluster, missing []string) error {
	half, err := images(ctx, h)
	if err != nil {
		return err
	}
	for _, ref := range missing {
		if !slices.Contains(half, ref) {
			continue
		}
		if _, err := h.Exec(ctx, "crictl", "rmi", ref); err != nil {
			return err
		}
	}
	for _, ref := range missing {
		if _, err := h.Exec(ctx, "crictl", "pull", ref); err != nil {
			return steps.Advise(err, "see `journalctl -u containerd` on %s, and whether the registry holds %s", h.Name, ref)
		}
	}
	if _, err := h.Run(ctx, runner.Cmd{Argv: []string{"sync", "-f", DataDir(c)}, Timeout: syncWithin}); err != nil {
		return err
	}
	for _, ref := range missing {
		if _, err := h.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "label", ref, pinned); err != nil {
			return err
		}
	}
	return nil
}

// syncWithin is how long a disk may take to write out a few gigabytes.
const syncWithin = 10 * time.Minute

// images gives the references that containerd has and that pass the filters.
func images(ctx context.Context, h *steps.Host, filters ...string) ([]string, error) {
	argv := append([]string{"ctr", "--namespace", "k8s.io", "images", "list", "--quiet"}, filters...)
	res, err := h.Run(ctx, runner.Cmd{Argv: argv, OK: []int{1}})
	if err != nil || res.Exit != 0 {
		return nil, err
	}
	return strings.Fields(string(res.Stdout)), nil
}

// missingImages gives the references that the node lacks, or has unpinned.
func missingImages(ctx context.Context, h *steps.Host, c *manifest.Cluster, needs []manifest.Need, at func(*steps.Host) (registry.Mapper, error)) ([]string, error) {
	var names registry.Mapper
	if at != nil {
		var err error
		if names, err = at(h); err != nil {
			return nil, err
		}
	}
	have, err := images(ctx, h, `labels."io.cri-containerd.pinned"==pinned`)
	if err != nil {
		return nil, err
	}
	master := slices.Contains(c.Spec.RoleGroups.Names(manifest.RoleMaster), h.Name)
	var missing []string
	for _, n := range needs {
		if slices.Contains(controlPlane, n.Name) && !master {
			continue
		}
		im, err := h.Image(n)
		if err != nil {
			return nil, err
		}
		if ref := string(names.Redigest([]byte(im.Reference))); !slices.Contains(have, ref) {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}
