package node

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Traces are files that a service of the host's own writes while it runs, such as
// what chrony learns of the clock. It stands before the unit in its list: those
// that were not there before the unit ran go again, once it is stopped.
type Traces struct {
	op.NoNeeds
	Of    string   // whose they are: "chrony.service"
	Paths []string // absolute
}

func (t Traces) String() string { return "files that " + t.Of + " writes" }

// Want puts on record which of them there are.
func (t Traces) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	return op.NoteOnce(ctx, h, t, "note which files "+t.Of+" has written", func() (string, error) {
		var there []string
		for _, p := range t.Paths {
			exists, err := h.Exists(ctx, p)
			if err != nil {
				return "", err
			}
			if exists {
				there = append(there, p)
			}
		}
		return strings.Join(there, "\n"), nil
	})
}

// Gone removes those that came.
func (t Traces) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return op.PutBack(ctx, h, t, "remove what "+t.Of+" wrote", func(ctx context.Context, before string) error {
		had := strings.Split(before, "\n")
		for _, p := range t.Paths {
			if slices.Contains(had, p) {
				continue
			}
			if err := h.Remove(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}
