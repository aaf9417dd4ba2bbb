package op

import (
	"context"
	"errors"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Unit is a systemd unit that runs and starts at boot. Its file is a resource
// of its own, before it in the list: when that or another one changed, the unit
// is restarted.
type Unit struct {
	NoNeeds
	Name string // "containerd.service"
	// Reload has the unit read its configuration again in place of a restart.
	Reload bool
	// Idle is for a unit that others start, as kubelet before it has a
	// configuration: it is enabled only, and restarted when it runs already.
	Idle bool
}

func (u Unit) String() string { return "unit " + u.Name }

// Want starts and enables the unit.
func (u Unit) Want(ctx context.Context, h *steps.Host, changed bool) (*Change, error) {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return nil, err
	}
	if !changed && s.IsEnabled() && (u.Idle || s.IsActive()) && !s.NeedsReload {
		e, _, err := Recall(ctx, h, u)
		if err != nil || !e.Pending {
			return nil, err
		}
	}
	what := "start " + u.Name
	switch {
	case s.IsActive():
		what = "restart " + u.Name
	case u.Idle:
		what = "enable " + u.Name
	}
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := u.start(ctx, h, s.IsActive()); err != nil {
				return err
			}
			e, _, err := Recall(ctx, h, u)
			if err != nil {
				return err
			}
			e.Pending = false
			return Rewrite(ctx, h, u, e)
		},
		// What it was before, it becomes again once its files are what they were.
		Undo: u.halt,
	}, nil
}

// Expect keeps what the unit was, and that it is to be restarted: a run that is
// cut off between a changed file and the restart leaves the next one nothing
// else to see it by.
func (u Unit) Expect(ctx context.Context, h *steps.Host) (*Change, error) {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return nil, err
	}
	e, recorded, err := Recall(ctx, h, u)
	if err != nil {
		return nil, err
	}
	now := s.Words()
	if !recorded {
		e = Record{Existed: s.Found(), Value: now}
	}
	pending := e
	pending.Pending = true
	return &Change{
		What: "note the state of " + u.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			return Remember(ctx, h, u, pending)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := u.set(ctx, h, now); err != nil {
				return err
			}
			if !recorded {
				return Forget(ctx, h, u)
			}
			return Rewrite(ctx, h, u, e)
		},
	}, nil
}

func (u Unit) start(ctx context.Context, h *steps.Host, running bool) error {
	if err := h.DaemonReload(ctx); err != nil {
		return err
	}
	if err := h.UnitEnable(ctx, u.Name); err != nil {
		return err
	}
	var err error
	switch {
	case u.Idle && !running:
		return nil
	case running && u.Reload:
		err = h.UnitReload(ctx, u.Name)
	default:
		if err := h.UnitResetFailed(ctx, u.Name); err != nil {
			return err
		}
		err = h.UnitRestart(ctx, u.Name)
	}
	if err == nil {
		return nil
	}
	if log, jerr := h.Journal(ctx, u.Name, 15); jerr == nil && strings.TrimSpace(log) != "" {
		err = errors.Join(err, errors.New("its last lines:\n"+indent(log)))
	}
	return steps.Advise(err, "see `journalctl -u %s` on %s", u.Name, h.Name)
}

// Gone stops and disables the unit. When all before it in its list is gone, it
// gets the state back that it had before kubexm came.
func (u Unit) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	_, recorded, err := Recall(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	s, err := h.Unit(ctx, u.Name)
	if err != nil || !s.IsEnabled() && !u.runs(s) {
		return nil, err
	}
	return &Change{What: "stop " + u.Name, Apply: u.halt}, nil
}

// Settle gives the unit the state that it had before kubexm came.
func (u Unit) Settle(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	what := "forget " + u.Name
	if e.Value != (runner.Unit{}).Words() {
		what = "make " + u.Name + " " + e.Value + " again"
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := u.set(ctx, h, e.Value); err != nil {
			return err
		}
		return Forget(ctx, h, u)
	}}, nil
}

// runs tells whether anything of the unit is alive, or its failure remembered.
func (Unit) runs(s runner.Unit) bool { return s.Active != "inactive" && s.Active != "" }

// halt stops and disables the unit.
func (u Unit) halt(ctx context.Context, h *steps.Host) error {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return err
	}
	if u.runs(s) {
		if err := h.UnitStop(ctx, u.Name); err != nil {
			return err
		}
		if err := h.UnitResetFailed(ctx, u.Name); err != nil {
			return err
		}
	}
	if !s.IsEnabled() {
		return nil
	}
	return h.UnitDisable(ctx, u.Name)
}

// set gives the unit, whose file is what it was, a state in the words of
// runner.Unit. One that has no file is nothing any more.
func (u Unit) set(ctx context.Context, h *steps.Host, words string) error {
	if err := h.DaemonReload(ctx); err != nil {
		return err
	}
	s, err := h.Unit(ctx, u.Name)
	if err != nil || !s.Found() || s.Words() == words {
		return err
	}
	if err := u.halt(ctx, h); err != nil {
		return err
	}
	if strings.HasPrefix(words, "enabled") {
		if err := h.UnitEnable(ctx, u.Name); err != nil {
			return err
		}
	}
	if strings.HasSuffix(words, " active") {
		return h.UnitStart(ctx, u.Name)
	}
	return nil
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}
