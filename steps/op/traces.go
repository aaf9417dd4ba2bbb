package op

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// Traces are files that an existing service of the host writes while it runs, such as
// chrony's drift file. It precedes the unit in its list: files that did not exist before the
// unit ran are removed once the unit is stopped.
type Traces struct {
	NoNeeds
	Of    string   // the unit: "chrony.service"
	Paths []string // absolute
	// Trees are folders and files that are removed with everything below them.
	Trees []string
}

func (t Traces) String() string { return "files that " + t.Of + " writes" }

// Want puts on record which of the files exist.
func (t Traces) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	return RecordOnce(ctx, h, t, "note which files "+t.Of+" has written", func() (string, error) {
		var existing []string
		for _, p := range slices.Concat(t.Paths, t.Trees) {
			exists, err := h.Exists(ctx, p)
			if err != nil {
				return "", err
			}
			if exists {
				existing = append(existing, p)
			}
		}
		return strings.Join(existing, "\n"), nil
	})
}

// Gone removes the files that did not exist before.
func (t Traces) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return Restore(ctx, h, t, "remove what "+t.Of+" wrote", func(ctx context.Context, before string) error {
		had := strings.Split(before, "\n")
		for _, p := range t.Paths {
			if slices.Contains(had, p) {
				continue
			}
			if err := h.Remove(ctx, p); err != nil {
				return err
			}
		}
		for _, p := range t.Trees {
			if slices.Contains(had, p) {
				continue
			}
			if err := h.RemoveAll(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}
