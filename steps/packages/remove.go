package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Gone removes the packages that kubexm installed, except those that other packages depend
// on.
func (p Installed) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := recall(ctx, h, p)
	if err != nil || !recorded || e.Packages == nil {
		return nil, err
	}
	if e.Pending {
		busy, err := jobRunning(ctx, h)
		if err != nil {
			return nil, err
		}
		if busy {
			return &op.Change{What: "stop and undo the installation of packages", Apply: p.remove}, nil
		}
	}
	free, kept, err := removable(ctx, h, *e.Packages, e.Packages.all())
	if err != nil {
		return nil, err
	}
	switch {
	case len(free) > 0:
		return &op.Change{What: "remove packages " + strings.Join(free, ", "), Diff: listed("-", free), Apply: p.remove}, nil
	case len(kept) == 0:
		return &op.Change{What: "remove the record of the packages", Apply: p.remove}, nil
	case e.Pending:
		return &op.Change{What: "record which packages stay", Apply: p.remove}, nil
	}
	return nil, nil
}

// removable returns which installed packages of ids can be removed, and which must stay.
func removable(ctx context.Context, h *steps.Host, b brought, ids []string) (free, kept []string, err error) {
	have, err := h.Packages(ctx, b.Format)
	if err != nil {
		return nil, nil, err
	}
	var installed []string
	for _, id := range ids {
		x, ok := have.Find(id)
		if ok && (x.State != runner.StateConfig || !slices.Contains(b.Kept, id)) {
			installed = append(installed, id)
		}
	}
	return h.FreePackages(ctx, b.Format, installed)
}

// remove removes the packages that can be removed. The others stay on record.
func (p Installed) remove(ctx context.Context, h *steps.Host) error {
	if err := finish(ctx, h); err != nil {
		return err
	}
	e, _, err := recall(ctx, h, p)
	if err != nil || e.Packages == nil {
		return err
	}
	kept, err := removeFree(ctx, h, *e.Packages, e.Packages.all())
	if err != nil {
		return err
	}
	if err := h.RemoveAll(ctx, workDir(h)); err != nil {
		return err
	}
	if len(kept) == 0 {
		return op.Forget(ctx, h, p)
	}
	h.Log.WarnContext(ctx, "packages stay: packages that kubexm did not install depend on them", "packages", strings.Join(kept, ", "))
	e.Packages.Came, e.Packages.May, e.Pending = kept, nil, false
	return rewrite(ctx, h, p, e)
}

// removeFree removes the packages of ids that can be removed, and returns those that stay.
func removeFree(ctx context.Context, h *steps.Host, b brought, ids []string) (kept []string, err error) {
	free, kept, err := removable(ctx, h, b, ids)
	if err != nil || len(free) == 0 {
		return kept, err
	}
	r := runner.PackageRemoval{Job: job(h).Name, Format: b.Format, Wait: lockWait}
	for _, id := range free {
		if slices.Contains(b.Kept, id) {
			r.Remove = append(r.Remove, id)
		} else {
			r.Purge = append(r.Purge, id)
		}
	}
	_, err = h.RemovePackages(ctx, r)
	return kept, err
}

// undo removes the packages that were installed since the record prior.
func (p Installed) undo(ctx context.Context, h *steps.Host, prior entry, recorded bool) error {
	if err := finish(ctx, h); err != nil {
		return err
	}
	e, _, err := recall(ctx, h, p)
	if err != nil {
		return err
	}
	if e.Packages != nil {
		since := e.Packages.all()
		if prior.Packages != nil {
			since = slices.DeleteFunc(since, func(id string) bool { return slices.Contains(prior.Packages.Came, id) })
		}
		kept, err := removeFree(ctx, h, *e.Packages, since)
		if err != nil {
			return err
		}
		if len(kept) > 0 {
			h.Log.WarnContext(ctx, "packages stay: other packages depend on them", "packages", strings.Join(kept, ", "))
		}
	}
	if err := h.RemoveAll(ctx, workDir(h)); err != nil {
		return err
	}
	if recorded {
		return rewrite(ctx, h, p, prior)
	}
	return op.Forget(ctx, h, p)
}
