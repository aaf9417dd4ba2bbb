package kubeadm

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
)

// Initializes tells whether Init would make a new control plane on h: kubeadm never
// ended well there, and nothing is there that a control plane starts from.
func Initializes(ctx context.Context, h *steps.Host) (bool, error) {
	if done, err := controlplane.Complete(ctx, h); err != nil || done {
		return false, err
	}
	sound, err := controlplane.Bootable(ctx, h)
	return err == nil && !sound, err
}

// KeptCA gives the certificate of the cluster whose data a deletion preserved, with h as
// its first master; nil where there is no such data.
func KeptCA(ctx context.Context, h *steps.Host) ([]byte, error) {
	k, err := readKept(ctx, h)
	if err != nil || k == nil {
		return nil, err
	}
	text, err := h.ReadFile(ctx, path.Join(keptKeys(h), "ca.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
