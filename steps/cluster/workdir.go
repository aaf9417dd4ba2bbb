package cluster

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// files returns file contents by their paths in the cluster's folder.
type files = func(context.Context, *steps.Host) (map[string][]byte, error)

// writeWorkdir returns a step that writes files to the cluster's folder on the workdir
// host. If their source does not exist yet, the step is not done.
func writeWorkdir(name string, of files) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, WorkdirOnly: true, Timeout: time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			want, err := of(ctx, h)
			if errors.Is(err, fs.ErrNotExist) || op.IsLater(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			for file, text := range want {
				have, err := os.ReadFile(filepath.Join(h.Workdir, file))
				if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(have, text) {
					return false, nil
				}
				if err != nil {
					return false, err
				}
			}
			return true, nil
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			want, err := of(ctx, h)
			if err != nil {
				return err
			}
			for _, file := range slices.Sorted(maps.Keys(want)) {
				at := filepath.Join(h.Workdir, file)
				before, err := os.ReadFile(at)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				existed := err == nil
				h.OnRollback(func(context.Context) error {
					if existed {
						return writeSecret(at, before)
					}
					return removeFile(at)
				})
				if err := writeSecret(at, want[file]); err != nil {
					return err
				}
			}
			return nil
		},
		Undo: op.Unwound,
	}
}

// RemoveWorkdirState removes the running cluster's state from its folder on the workdir host: the
// kubeconfig, the cluster record and the open operation.
func RemoveWorkdirState() steps.Step {
	all := append([]string{kubeconfigName, operationName}, appliedNames()...)
	for _, file := range all {
		all = append(all, durable.TempPath(file))
	}
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.forget-cluster", WorkdirOnly: true, Timeout: time.Minute},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			for _, file := range all {
				_, err := os.Stat(filepath.Join(h.Workdir, file))
				if !errors.Is(err, fs.ErrNotExist) {
					return false, err
				}
			}
			return true, nil
		},
		Act: func(_ context.Context, h *steps.Host) error {
			for _, file := range all {
				if err := removeFile(filepath.Join(h.Workdir, file)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeSecret writes a file with mode 0600 atomically.
func writeSecret(name string, text []byte) error {
	if err := durable.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(name, text, 0o600)
}
