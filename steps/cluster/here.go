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

// files gives documents by their paths in the cluster's folder.
type files = func(context.Context, *steps.Host) (map[string][]byte, error)

// keepHere keeps documents in the cluster's folder on this machine. What they
// are made of may not be there yet: then they are still to be written.
func keepHere(name string, of files) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, Here: true, Timeout: time.Minute},
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
						return keep(at, before)
					}
					return gone(at)
				})
				if err := keep(at, want[file]); err != nil {
					return err
				}
			}
			return nil
		},
		Undo: op.Unwound,
	}
}

// ForgetHere takes what this machine keeps of the cluster's running state out of
// its folder: the kubeconfig of what is gone, the record of what was applied, and the
// operation that was open.
func ForgetHere() steps.Step {
	all := append([]string{kubeconfigName, operationName}, appliedNames()...)
	for _, file := range all {
		all = append(all, durable.Beside(file))
	}
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.forget-cluster", Here: true, Timeout: time.Minute},
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
				if err := gone(filepath.Join(h.Workdir, file)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func gone(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keep writes a secret file whole or not at all.
func keep(name string, text []byte) error {
	if err := durable.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(name, text, 0o600)
}
