package op

import (
	"context"
	"errors"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// Unit is a systemd unit that runs and starts at boot. Its file is a resource
// of its own, before it in the list: when that or another one changed, the unit
// is restarted.
type Unit struct {
	noNeeds
	Name string // "containerd.service"
	// Reload has the unit read its configuration again in place of a restart.
	Reload bool
	// Started is false for a unit that others start, as kubelet before it has a
	// configuration: it is enabled only.
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
		return nil, nil
	}
	what := "start " + u.Name
	if s.IsActive() {
		what = "restart " + u.Name
	}
	before := unitWords(s.IsEnabled(), s.IsActive())
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := remember(ctx, h, u, entry{Existed: s.Found(), Value: before}); err != nil {
				return err
			}
			return u.start(ctx, h, s.IsActive())
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return u.set(ctx, h, before) },
	}, nil
}

func (u Unit) start(ctx context.Context, h *steps.Host, running bool) error {
	if err := errors.Join(h.DaemonReload(ctx), h.UnitEnable(ctx, u.Name)); err != nil {
		return err
	}
	var err error
	switch {
	case u.Idle:
		return nil
	case running && u.Reload:
		err = h.UnitReload(ctx, u.Name)
	default:
		_ = h.UnitResetFailed(ctx, u.Name) // a unit that never failed has nothing to reset
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

// Gone stops and disables the unit, or gives it back the state it had before.
func (u Unit) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	s, err := h.Unit(ctx, u.Name)
	if err != nil {
		return nil, err
	}
	e, recorded, err := recall(ctx, h, u)
	if err != nil {
		return nil, err
	}
	before := unitWords(false, false)
	if recorded {
		before = e.Value
	}
	if now := unitWords(s.IsEnabled(), s.IsActive()); !recorded && (!s.Found() || now == before) {
		return nil, nil
	}
	return &Change{
		What: "stop " + u.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			return errors.Join(u.set(ctx, h, before), forget(ctx, h, u))
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			return u.set(ctx, h, unitWords(s.IsEnabled(), s.IsActive()))
		},
	}, nil
}

func unitWords(enabled, active bool) string {
	words := "disabled inactive"
	if enabled {
		words = strings.Replace(words, "disabled", "enabled", 1)
	}
	if active {
		words = strings.Replace(words, "inactive", "active", 1)
	}
	return words
}

// set gives the unit a state in the words of unitWords.
func (u Unit) set(ctx context.Context, h *steps.Host, words string) error {
	s, err := h.Unit(ctx, u.Name)
	if err != nil || !s.Found() {
		return err
	}
	if strings.HasPrefix(words, "enabled") {
		err = h.UnitEnable(ctx, u.Name)
	} else {
		err = h.UnitDisable(ctx, u.Name)
	}
	if strings.HasSuffix(words, " active") {
		return errors.Join(err, h.UnitStart(ctx, u.Name))
	}
	return errors.Join(err, h.UnitStop(ctx, u.Name))
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}
