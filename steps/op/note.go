package op

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
)

// NoteOnce gives the change that puts what read finds on record as the Value of r's
// record; nil where there is a record already.
func NoteOnce(ctx context.Context, h *steps.Host, r Resource, what string, read func() (string, error)) (*Change, error) {
	_, recorded, err := Recall(ctx, h, r)
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

// PutBack gives the change that brings back what the record of r holds, and forgets
// it; nil where there is no record. back is given its Value.
func PutBack(ctx context.Context, h *steps.Host, r Resource, what string, back func(ctx context.Context, before string) error) (*Change, error) {
	e, recorded, err := Recall(ctx, h, r)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := back(ctx, e.Value); err != nil {
			return err
		}
		return Forget(ctx, h, r)
	}}, nil
}
