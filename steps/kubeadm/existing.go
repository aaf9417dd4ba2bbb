package kubeadm

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
)

// Initializes reports whether Init would create a new control plane on h: kubeadm never
// succeeded there, and the files that a control plane starts from do not exist.
func Initializes(ctx context.Context, h *steps.Host) (bool, error) {
	if done, err := controlplane.Complete(ctx, h); err != nil || done {
		return false, err
	}
	sound, err := controlplane.Bootable(ctx, h)
	return err == nil && !sound, err
}

// PreservedCA returns the CA certificate of the cluster whose data a deletion preserved on h,
// its first master; nil if there is no such data.
func PreservedCA(ctx context.Context, h *steps.Host) ([]byte, error) {
	k, err := readPreserved(ctx, h)
	if err != nil || k == nil {
		return nil, err
	}
	text, err := h.ReadFile(ctx, path.Join(preservedKeyDir(h), "ca.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
