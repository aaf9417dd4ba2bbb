package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// pinned is the label that excludes an image from the kubelet's garbage collection.
const pinned = "io.cri-containerd.pinned=pinned"

// controlPlane are the images that run only on masters.
var controlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}

// Preload pulls the images that a node will run and pins them, so that the node also starts
// without its registry. Each image is pulled by its digest in the lock file and tagged on the
// node, because any client that pushes to a registry can change its tags. Before anything is
// pulled, the step checks that the registry's tags refer to the same images, since the
// images of pods are pulled by tag.
func Preload(c *manifest.Cluster, names []string, at func(*steps.Host) (registry.Mapper, error), tags func(context.Context, *steps.Host, []manifest.ImagePin) error) steps.Step {
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
			if tags != nil && len(missing) > 0 {
				var pins []manifest.ImagePin
				for _, w := range missing {
					pins = append(pins, w.pin)
				}
				if err := tags(ctx, h, pins); err != nil {
					return err
				}
			}
			return pull(ctx, h, c, missing)
		},
	}
}

// wanted is an image that a node needs.
type wanted struct {
	pin    manifest.ImagePin
	digest string // of the image in the site's registry
	pull   string // its reference with that digest
	name   string // its reference in pods: with its tag, or the same if it has none
}

// want returns the image of a pin as a node needs it.
func want(im manifest.ImagePin, names registry.Mapper) (wanted, error) {
	named, err := reference.ParseNormalizedNamed(im.Reference)
	if err != nil {
		return wanted{}, fmt.Errorf("image reference %q: %w", im.Reference, err)
	}
	base := reference.TrimNamed(named).Name()
	w := wanted{pin: im, pull: string(names.Redigest([]byte(base + "@" + im.Digest)))}
	_, w.digest, _ = strings.Cut(w.pull, "@")
	w.name = w.pull
	if _, digested := named.(reference.Digested); !digested {
		w.name = reference.TagNameOnly(named).String()
	}
	return w, nil
}

// parallelPulls is how many images a node pulls at the same time. One alone uses one processor: a
// layer is decompressed by one thread, and unpacked after the layers below it.
const parallelPulls = 3

// pull pulls images, and pins them once their content is synced to disk.
func pull(ctx context.Context, h *steps.Host, c *manifest.Cluster, missing []wanted) error {
	if err := drop(ctx, h, missing); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelPulls)
	for _, w := range missing {
		g.Go(func() error {
			if _, err := h.Exec(gctx, "crictl", "pull", w.pull); err != nil {
				return steps.Advise(err, "run journalctl -u containerd on %s, and check that the registry has %s", h.Name, w.pull)
			}
			if w.name == w.pull {
				return nil
			}
			_, err := h.Exec(gctx, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", w.pull, w.name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return pin(ctx, h, c, missing...)
}

// drop removes existing images that are not pinned or have another digest. containerd does
// not sync to disk: after a loss of power it treats images with empty files as complete, and
// never unpacks them again.
func drop(ctx context.Context, h *steps.Host, missing []wanted) error {
	half, err := images(ctx, h)
	if err != nil {
		return err
	}
	for _, w := range missing {
		for _, ref := range []string{w.name, w.pull} {
			if half[ref] == "" {
				continue
			}
			if err := remove(ctx, h, ref); err != nil {
				return err
			}
			if half, err = images(ctx, h); err != nil { // its other names were removed as well
				return err
			}
		}
	}
	return nil
}

// remove removes an image through the CRI, with its unpacked content. An image that an
// interrupted import left without content is unknown to the CRI and removed with ctr.
func remove(ctx context.Context, h *steps.Host, ref string) error {
	_, err := h.Exec(ctx, "crictl", "rmi", ref)
	var failed *runner.CmdError
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "no such image") {
		_, err = h.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "remove", "--sync", ref)
	}
	return err
}

// pin sets the label, after it has synced the images' content to disk.
func pin(ctx context.Context, h *steps.Host, c *manifest.Cluster, all ...wanted) error {
	if _, err := h.Run(ctx, runner.Cmd{Argv: []string{"sync", "-f", part.RuntimeOf(c).DataDir}, Timeout: syncWithin}); err != nil {
		return err
	}
	for _, w := range all {
		if _, err := h.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "label", w.name, pinned); err != nil {
			return err
		}
	}
	return nil
}

// syncWithin is how long a disk may take to write a few gigabytes.
const syncWithin = 10 * time.Minute

// images returns the digests of containerd's images that match the filters, by name.
func images(ctx context.Context, h *steps.Host, filters ...string) (map[string]string, error) {
	argv := append([]string{"ctr", "--namespace", "k8s.io", "images", "list"}, filters...)
	res, err := h.Run(ctx, runner.Cmd{Argv: argv, OK: []int{1}})
	if err != nil || res.Exit != 0 {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(res.Stdout)) { // REF TYPE DIGEST SIZE PLATFORMS LABELS
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[2], "sha256:") {
			out[f[0]] = f[2]
		}
	}
	return out, nil
}

// missingImages returns the images of needs that the node lacks.
func missingImages(ctx context.Context, h *steps.Host, c *manifest.Cluster, needs []manifest.Need, at func(*steps.Host) (registry.Mapper, error)) ([]wanted, error) {
	var names registry.Mapper
	if at != nil {
		var err error
		if names, err = at(h); err != nil {
			return nil, err
		}
	}
	var pins []manifest.ImagePin
	for _, n := range needs {
		if slices.Contains(controlPlane, n.Name) && !isMaster(c, h) {
			continue
		}
		im, err := h.Image(n)
		if err != nil {
			return nil, err
		}
		pins = append(pins, im)
	}
	missing, _, err := lacking(ctx, h, pins, names)
	return missing, err
}

func isMaster(c *manifest.Cluster, h *steps.Host) bool {
	return c.Spec.RoleGroups.Has(manifest.RoleMaster, h.Name)
}

// lacking returns the images that the node lacks, or has unpinned or with another digest than
// the lock file's, and the existing ones.
func lacking(ctx context.Context, h *steps.Host, pins []manifest.ImagePin, names registry.Mapper) (missing, existing []wanted, err error) {
	have, err := images(ctx, h, `labels."io.cri-containerd.pinned"==pinned`)
	if err != nil {
		return nil, nil, err
	}
	for _, im := range pins {
		w, err := want(im, names)
		if err != nil {
			return nil, nil, err
		}
		if have[w.name] == w.digest {
			existing = append(existing, w)
		} else {
			missing = append(missing, w)
		}
	}
	return missing, existing, nil
}
