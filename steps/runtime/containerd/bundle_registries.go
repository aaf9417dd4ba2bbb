package containerd

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

// further are the registries that only the bundle's lock file lists: those of images in
// charts and manifests. A plan, which has only the config, cannot list them. A run therefore
// reads the lock file, and a removal the files on the host.
type further struct {
	mirrors *cri.Mirrors
	known   []string // registries that other resources configure
}

func (further) String() string { return "registries of the bundle's images" }

// Needs returns nil: the lock file is not an artifact.
func (further) Needs() []manifest.Need { return nil }

// Want compares the files of each registry.
func (f further) Want(ctx context.Context, h *steps.Host, earlier bool) (*op.Change, error) {
	var refs []string
	for _, im := range h.Artifacts.Images() {
		refs = append(refs, im.Reference)
	}
	return joined(ctx, h, f.resources(cri.Upstreams(refs)), func(ctx context.Context, h *steps.Host, r op.Resource) (*op.Change, error) {
		return r.Want(ctx, h, earlier)
	})
}

// Gone removes the files that kubexm created, for registries of any bundle.
func (f further) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	all, err := h.List(ctx, certsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, i := range all {
		if i.IsDir() {
			hosts = append(hosts, i.Name)
		}
	}
	slices.Sort(hosts)
	rs := f.resources(hosts)
	slices.Reverse(rs)
	c, err := joined(ctx, h, rs, func(ctx context.Context, h *steps.Host, r op.Resource) (*op.Change, error) { return r.Gone(ctx, h) })
	if c != nil {
		c.Undo = nil
	}
	return c, err
}

// resources returns the files of the registries that no other resource configures.
func (f further) resources(hosts []string) []op.Resource {
	var rs []op.Resource
	for _, host := range hosts {
		if !slices.Contains(f.known, host) {
			rs = append(rs, upstream(f.mirrors, host, nil)...)
		}
	}
	return rs
}

// joined combines the changes of a list into one. Each change is computed again right before
// it is applied: a folder is empty only after its file was removed.
func joined(ctx context.Context, h *steps.Host, rs []op.Resource,
	change func(context.Context, *steps.Host, op.Resource) (*op.Change, error)) (*op.Change, error) {
	var what, diff []string
	for _, r := range rs {
		c, err := change(ctx, h, r)
		if err != nil {
			return nil, err
		}
		if c != nil {
			what, diff = append(what, c.What), append(diff, c.Diff)
		}
	}
	if len(what) == 0 {
		return nil, nil
	}
	var undo []op.Fn
	return &op.Change{
		What: strings.Join(what, ", "), Diff: strings.TrimSpace(strings.Join(diff, "\n")),
		Apply: func(ctx context.Context, h *steps.Host) error {
			for _, r := range rs {
				c, err := change(ctx, h, r)
				if err != nil {
					return err
				}
				if c == nil {
					continue
				}
				if c.Undo != nil {
					undo = append(undo, c.Undo)
				}
				if err := c.Apply(ctx, h); err != nil {
					return err
				}
			}
			return nil
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			var errs []error
			for _, f := range slices.Backward(undo) {
				errs = append(errs, f(ctx, h))
			}
			undo = nil
			return errors.Join(errs...)
		},
	}, nil
}
