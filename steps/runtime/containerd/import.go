package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Import imports the bundle's images on a node of a site without a registry. It streams them
// from the bundle to the runtime and stores no temporary files. Images of the control plane
// are imported only on masters. Blobs that the node already has are not sent, and blobs that
// images share are sent once. Each image is pinned before the next is sent, so that an
// interrupted import continues with the next image.
func Import(c *manifest.Cluster, needs []manifest.Need) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "containerd.import-images", Needs: needs, Upload: true, Timeout: 2 * time.Hour, Retry: steps.Retry{Times: 2, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			missing, _, err := lacking(ctx, h, ofNode(c, h), registry.Mapper{})
			return err == nil && len(missing) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			i := &importing{h: h, cluster: c, sent: map[string]bool{}}
			err := i.all(ctx)
			h.Log.InfoContext(ctx, "imported", "images", i.images, "blobs", i.blobs, "bytes", i.bytes, "held", i.held)
			return steps.Advise(err, "run journalctl -u containerd on %s, and check that its disk is not full", h.Name)
		},
	}
}

// ofNode returns the bundle's images that a node needs.
func ofNode(c *manifest.Cluster, h *steps.Host) []manifest.ImagePin {
	all := h.Artifacts.Images()
	if isMaster(c, h) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(im manifest.ImagePin) bool {
		return len(im.Names) > 0 && !slices.ContainsFunc(im.Names, func(n string) bool { return !slices.Contains(controlPlane, n) })
	})
}

// importing is the state of one Import.
type importing struct {
	h       *steps.Host
	cluster *manifest.Cluster
	sent    map[string]bool // blobs of complete images in the node's content store, by digest

	images, blobs, held int
	bytes               int64
}

func (i *importing) all(ctx context.Context) error {
	argv, err := i.argv(ctx)
	if err != nil {
		return err
	}
	pins := ofNode(i.cluster, i.h)
	missing, _, err := lacking(ctx, i.h, pins, registry.Mapper{})
	if err != nil {
		return err
	}
	if err := drop(ctx, i.h, missing); err != nil {
		return err
	}
	missing, existing, err := lacking(ctx, i.h, pins, registry.Mapper{}) // dropped images may have had other names
	if err != nil {
		return err
	}
	if err := i.holds(ctx, existing); err != nil {
		return err
	}
	for _, w := range missing {
		if err := i.one(ctx, argv, w); err != nil {
			return fmt.Errorf("import %s: %w", w.pin.Reference, err)
		}
	}
	return nil
}

// argv returns the command that imports only the node's platform: an index lists others,
// which are not sent. Without --local, ctr of containerd 2 passes the stream on to the
// daemon; older ones do not have that flag.
func (i *importing) argv(ctx context.Context) ([]string, error) {
	argv := []string{"ctr", "--namespace", "k8s.io", "images", "import"}
	help, err := i.h.Exec(ctx, append(slices.Clone(argv), "--help")...)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(help), "--platform") {
		return nil, steps.Advise(errors.New("this containerd cannot import an image for a single platform"), "set a later spec.runtime.version, or use a registry with spec.registry.type")
	}
	if strings.Contains(string(help), "--local") {
		argv = append(argv, "--local")
	}
	return append(argv, "--platform", i.h.Platform.String(), "-"), nil
}

// holds records which blobs of complete images are in the node's content store. Other blobs
// belong to no image, and the runtime may garbage-collect them at any time.
func (i *importing) holds(ctx context.Context, existing []wanted) error {
	if len(existing) == 0 {
		return nil
	}
	out, err := i.h.Run(ctx, runner.Cmd{Argv: []string{"ctr", "--namespace", "k8s.io", "content", "list", "--quiet"}, Limit: maxContents})
	if err != nil {
		return err
	}
	store := map[string]bool{}
	for d := range strings.FieldsSeq(string(out.Stdout)) {
		store[d] = true
	}
	for _, w := range existing {
		blobs, err := registry.ForPlatform(i.h.Artifacts, w.pin, i.h.Platform)
		if err != nil {
			return err
		}
		for _, d := range blobs {
			if store[d.Digest.String()] {
				i.sent[d.Digest.String()] = true
			}
		}
	}
	return nil
}

// maxContents limits the size of a list of digests, in bytes.
const maxContents = 32 << 20

// one imports an image under its tag and its digest, and pins it.
func (i *importing) one(ctx context.Context, argv []string, w wanted) error {
	all, err := registry.ForPlatform(i.h.Artifacts, w.pin, i.h.Platform)
	if err != nil {
		return err
	}
	blobs := slices.DeleteFunc(slices.Clone(all), func(d v1.Descriptor) bool { return i.sent[d.Digest.String()] })
	layout, err := registry.NewLayout(i.h.Artifacts, w.pin, slices.Compact([]string{w.name, w.pull}), blobs)
	if err != nil {
		return err
	}
	_, err = i.h.Run(ctx, runner.Cmd{Argv: argv, Stdin: layout})
	if err = errors.Join(err, layout.Close()); err != nil {
		return err
	}
	for _, d := range blobs {
		i.bytes += d.Size
	}
	i.images, i.blobs, i.held = i.images+1, i.blobs+len(blobs), i.held+len(all)-len(blobs)
	if err := pin(ctx, i.h, i.cluster, w); err != nil {
		return err
	}
	for _, d := range all {
		i.sent[d.Digest.String()] = true
	}
	return nil
}
