package op

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
)

// RecordOnce returns the change that stores the result of read as the Value of r's record.
// It returns nil if r already has a record.
func RecordOnce(ctx context.Context, h *steps.Host, r Resource, what string, read func() (string, error)) (*Change, error) {
	_, recorded, err := ReadRecord(ctx, h, r)
	if err != nil || recorded {
		return nil, err
	}
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			value, err := read()
			if err != nil {
				return err
			}
			return Remember(ctx, h, r, Record{Existed: true, Value: value})
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return Forget(ctx, h, r) },
	}, nil
}

// Restore returns the change that calls restore with the Value of r's record, and then
// deletes the record. It returns nil if r has no record.
func Restore(ctx context.Context, h *steps.Host, r Resource, what string, restore func(ctx context.Context, before string) error) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, r)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := restore(ctx, e.Value); err != nil {
			return err
		}
		return Forget(ctx, h, r)
	}}, nil
}
