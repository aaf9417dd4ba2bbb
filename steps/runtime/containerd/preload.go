package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
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
// and pins them: a node that lost its registry still starts. Each is pulled by the
// digest that the lock has, and gets its tag here: what a tag names in a registry
// is the word of whoever pushed last. at gives images the digests that the site's
// registry has; nil is upstream's. tags is asked before anything is pulled whether
// the registry's tags name these images, since pods' images are pulled by tag; it
// may be nil.
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
			return bring(ctx, h, c, missing)
		},
	}
}

// wanted is an image that a node is to have.
type wanted struct {
	pin    manifest.ImagePin
	digest string // of the image at the site
	pull   string // its name with that digest
	name   string // what pods call it: with its tag, or the same where it has none
}

// want gives an image of the lock as a node has it.
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

// bring pulls images, and pins them once the disk has taken all that they were
// unpacked to.
func bring(ctx context.Context, h *steps.Host, c *manifest.Cluster, missing []wanted) error {
	if err := drop(ctx, h, missing); err != nil {
		return err
	}
	for _, w := range missing {
		if _, err := h.Exec(ctx, "crictl", "pull", w.pull); err != nil {
			return steps.Advise(err, "see `journalctl -u containerd` on %s, and whether the registry holds %s", h.Name, w.pull)
		}
		if w.name == w.pull {
			continue
		}
		if _, err := h.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", w.pull, w.name); err != nil {
			return err
		}
	}
	return pin(ctx, h, c, missing...)
}

// drop takes images away that are there without the label, or as others. containerd
// does not wait for the disk: after a loss of power it holds images for whole whose
// files are empty, and never unpacks them again.
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
			if half, err = images(ctx, h); err != nil { // other names of it went as well
				return err
			}
		}
	}
	return nil
}

// remove has the CRI forget an image, with all that was unpacked of it. One that an
// import left without its content is none that the CRI knows.
func remove(ctx context.Context, h *steps.Host, ref string) error {
	_, err := h.Exec(ctx, "crictl", "rmi", ref)
	var failed *runner.CmdError
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "no such image") {
		_, err = h.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "remove", "--sync", ref)
	}
	return err
}

// pin sets the label, once the disk has taken what the images were unpacked to.
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

// syncWithin is how long a disk may take to write out a few gigabytes.
const syncWithin = 10 * time.Minute

// images gives the digests of the images that containerd has and that pass the
// filters, by their names.
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

// missingImages gives the images of needs that the node lacks.
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

// lacking gives the images that the node lacks, has unpinned, or has as another one
// than the lock; and the others.
func lacking(ctx context.Context, h *steps.Host, pins []manifest.ImagePin, names registry.Mapper) (missing, there []wanted, err error) {
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
			there = append(there, w)
		} else {
			missing = append(missing, w)
		}
	}
	return missing, there, nil
}
