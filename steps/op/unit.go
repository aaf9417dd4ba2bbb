package op

import (
	"context"
	"errors"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Unit is a systemd unit that is running and enabled. Its file is a separate resource
// before it in the list: the unit restarts if that or any other resource before it was
// changed.
type Unit struct {
	NoNeeds
	Name string // "containerd.service"
	// Reload reloads the unit's configuration instead of restarting it.
	Reload bool
	// Idle is for a unit that another program starts, such as kubelet before it has a
	// configuration: the unit is only enabled, and restarted if it is running.
	Idle bool
}

func (u Unit) String() string { return "unit " + u.Name }

// Want enables the unit, and starts, restarts or reloads it.
func (u Unit) Want(ctx context.Context, h *steps.Host, changed bool) (*Change, error) {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return nil, err
	}
	if !changed && s.IsEnabled() && (u.Idle || s.IsActive()) && !s.NeedsReload {
		e, _, err := ReadRecord(ctx, h, u)
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
			e, _, err := ReadRecord(ctx, h, u)
			if err != nil {
				return err
			}
			e.Pending = false
			return Rewrite(ctx, h, u, e)
		},
		// Expect's Undo restores the previous state, after the files have been restored.
		Undo: u.halt,
	}, nil
}

// Expect records the unit's state, and that the unit must be restarted. If a run is
// interrupted between a changed file and the restart, the next run knows only from the
// record that the restart is due.
func (u Unit) Expect(ctx context.Context, h *steps.Host) (*Change, error) {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return nil, err
	}
	e, recorded, err := ReadRecord(ctx, h, u)
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
		What: "record the state of " + u.Name,
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

// Gone stops and disables the unit. Settle restores its original state after the resources
// before it in the list have been removed.
func (u Unit) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	_, recorded, err := ReadRecord(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	s, err := h.Unit(ctx, u.Name)
	if err != nil || !s.IsEnabled() && !u.runs(s) {
		return nil, err
	}
	return &Change{What: "stop " + u.Name, Apply: u.halt}, nil
}

// Settle restores the original state of the unit.
func (u Unit) Settle(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove the record of " + u.Name
	if e.Value != (runner.Unit{}).Words() {
		what = "restore " + u.Name + " to " + e.Value
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := u.set(ctx, h, e.Value); err != nil {
			return err
		}
		return Forget(ctx, h, u)
	}}, nil
}

// runs reports whether the unit is not inactive: it has processes, or has failed.
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

// set brings the unit into a state as returned by runner.Unit.Words. The unit's file must
// have been restored before; a unit without a file is ignored.
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
