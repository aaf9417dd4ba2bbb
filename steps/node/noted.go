package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Noted are kernel settings that Kubernetes' components change at run time. Their values are
// put on record before the installation, and restored after the removal.
type Noted struct {
	op.NoNeeds
	Keys []string
}

func (Noted) String() string { return "kernel settings that others change" }

// Want puts the values on record. It skips keys that the kernel does not have.
func (n Noted) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	return op.RecordOnce(ctx, h, n, "note kernel settings", func() (string, error) {
		values := map[string]string{}
		for _, key := range n.Keys {
			v, err := h.Sysctl(ctx, key)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			values[key] = v
		}
		text, err := json.Marshal(values)
		return string(text), err
	})
}

// Gone restores the values that have changed. A key that cannot be written, as in a
// container, was not changed by others either.
func (n Noted) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return op.Restore(ctx, h, n, "set kernel settings back", func(ctx context.Context, before string) error {
		values := map[string]string{}
		if err := json.Unmarshal([]byte(before), &values); err != nil {
			return fmt.Errorf("record of %s: %w", n, err)
		}
		for _, key := range n.Keys { // in the order of Keys: one may depend on another
			was, ok := values[key]
			if !ok {
				continue
			}
			now, err := h.Sysctl(ctx, key)
			if errors.Is(err, fs.ErrNotExist) || err == nil && sameWords(now, was) {
				continue
			}
			if err != nil {
				return err
			}
			if err := h.SetSysctl(ctx, key, was); runner.Refused(err) {
				h.Log.WarnContext(ctx, "a kernel setting stays as it is", "key", key, "value", now, "before", was, "err", err)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}
