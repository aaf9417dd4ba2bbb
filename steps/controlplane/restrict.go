package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// RestrictFiles makes files of kubeadm, the kubelet and the pod network readable only by
// root: by default all users can read some of them. A reset deletes these files.
func RestrictFiles(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.restrict-files", Timeout: 10 * time.Minute}, // many small commands: a host under load took two minutes
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			open, err := openFiles(ctx, c, h)
			return len(open) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			open, err := openFiles(ctx, c, h)
			if err != nil {
				return err
			}
			for _, f := range open {
				// A file may have been removed or replaced meanwhile.
				if err := h.SetAttr(ctx, f.path, f.attr); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		},
	}
}

type openFile struct {
	path string
	attr runner.Attr
}

// openFiles returns the files whose mode or owner differs from the table. It skips files that
// do not exist on the host: a worker has no keys of the cluster.
func openFiles(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]openFile, error) {
	var out []openFile
	for _, s := range part.FilesOf(c) {
		mode, err := strconv.ParseUint(s.Value, 8, 12)
		if err != nil {
			return nil, err
		}
		want := runner.Attr{Mode: fs.FileMode(mode), Owner: "root", Group: "root"}
		all, err := h.List(ctx, path.Dir(s.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			fits, err := path.Match(path.Base(s.Name), i.Name)
			if err != nil {
				return nil, err
			}
			// A * matches only files, and a symbolic link has no mode.
			if star := path.Base(s.Name) != i.Name; !fits || star && !i.IsRegular() || i.IsLink() || i.Has(want) {
				continue
			}
			out = append(out, openFile{path.Join(path.Dir(s.Name), i.Name), want})
		}
	}
	return out, nil
}
