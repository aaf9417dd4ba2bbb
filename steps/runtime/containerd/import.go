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

// Import brings every image of the bundle to a node of a site without a registry:
// straight from the archive into the runtime, with nothing unpacked on either side.
// Those of the control plane go to masters alone. What the node holds already is not
// sent, and what images share is sent once. Each is pinned before the next is sent,
// so that an import that breaks goes on with the image that it broke at.
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
			return steps.Advise(err, "see `journalctl -u containerd` on %s, and whether its disk is full", h.Name)
		},
	}
}

// ofNode are the bundle's images that a node is to have.
func ofNode(c *manifest.Cluster, h *steps.Host) []manifest.ImagePin {
	all := h.Artifacts.Images()
	if isMaster(c, h) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(im manifest.ImagePin) bool {
		return len(im.Names) > 0 && !slices.ContainsFunc(im.Names, func(n string) bool { return !slices.Contains(controlPlane, n) })
	})
}

// importing is one Import at work.
type importing struct {
	h       *steps.Host
	cluster *manifest.Cluster
	sent    map[string]bool // what images that are whole have in the node's store

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
	missing, there, err := lacking(ctx, i.h, pins, registry.Mapper{}) // other names of what was dropped went as well
	if err != nil {
		return err
	}
	if err := i.holds(ctx, there); err != nil {
		return err
	}
	for _, w := range missing {
		if err := i.one(ctx, argv, w); err != nil {
			return fmt.Errorf("import %s: %w", w.pin.Reference, err)
		}
	}
	return nil
}

// argv is the command that imports for the node's platform alone: an index names
// others, which are not sent. ctr of containerd 2 would hand the stream on to the
// daemon, where it is not told to do the work itself; older ones know no such word.
func (i *importing) argv(ctx context.Context) ([]string, error) {
	argv := []string{"ctr", "--namespace", "k8s.io", "images", "import"}
	help, err := i.h.Exec(ctx, append(slices.Clone(argv), "--help")...)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(help), "--platform") {
		return nil, steps.Advise(errors.New("this containerd cannot import an image for one platform"), "choose a later spec.runtime.version, or a registry: spec.registry.type")
	}
	if strings.Contains(string(help), "--local") {
		argv = append(argv, "--local")
	}
	return append(argv, "--platform", i.h.Platform.String(), "-"), nil
}

// holds notes which blobs of images that are whole are in the node's store. Others
// that are there belong to nothing, and the runtime may collect them at any time.
func (i *importing) holds(ctx context.Context, there []wanted) error {
	if len(there) == 0 {
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
	for _, w := range there {
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

// maxContents is how long a list of digests may be.
const maxContents = 32 << 20

// one imports an image under both of its names, and pins it.
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
