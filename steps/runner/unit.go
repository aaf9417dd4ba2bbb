package runner

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Unit is the state of a systemd unit.
type Unit struct {
	Name        string
	Load        string // loaded, not-found, masked, error
	Active      string // active, inactive, failed, activating, deactivating
	Sub         string // running, exited, dead, …
	File        string // enabled, disabled, static, masked, …; empty if there is no file
	Path        string // of the unit's file
	Result      string // success, exit-code, signal, timeout, …
	NeedsReload bool   // the file has changed since systemd loaded it
	MainPID     int    // 0: none
	Restarts    int
	Description string
}

// Found reports whether the unit exists.
func (u Unit) Found() bool { return u.Load != "" && u.Load != "not-found" }

// IsActive reports whether the unit is active: running, or a oneshot that has finished.
func (u Unit) IsActive() bool { return u.Active == "active" }

// IsEnabled reports whether the unit starts at boot.
func (u Unit) IsEnabled() bool { return u.File == "enabled" || u.File == "enabled-runtime" }

// Words returns whether the unit is enabled and whether it is active, as "enabled active".
// Records on hosts contain this text.
func (u Unit) Words() string {
	words := "disabled"
	if u.IsEnabled() {
		words = "enabled"
	}
	if u.IsActive() {
		return words + " active"
	}
	return words + " inactive"
}

// unitProperties are the properties that Unit queries.
const unitProperties = "Id,LoadState,ActiveState,SubState,UnitFileState,FragmentPath,Result,NeedDaemonReload,MainPID,NRestarts,Description"

// unitName matches valid unit names.
var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]{1,251}\.(service|socket|target|timer|mount|path|slice|scope|device|swap|automount)$`)

func checkUnit(name string) error {
	if !unitName.MatchString(name) || strings.HasPrefix(name, "-") {
		return fmt.Errorf("%q is not a valid unit name", name)
	}
	return nil
}

// Unit returns the state of a unit. A unit that does not exist is not an error: it is not
// Found.
func (r *Runner) Unit(ctx context.Context, name string) (Unit, error) {
	res, err := r.systemctl(ctx, connector.VerbUnitShow, name, "show", "--no-pager", "-p", unitProperties)
	if err != nil {
		return Unit{}, err
	}
	u := parseUnit(res.Stdout)
	if u.Name = name; u.Load == "" {
		return Unit{}, fmt.Errorf("unit %s: systemctl printed %q", name, res.Stdout)
	}
	return u, nil
}

// parseUnit parses NAME=VALUE lines and ignores unknown names.
func parseUnit(b []byte) Unit {
	p := properties(b)
	number := func(key string) int {
		n, _ := strconv.Atoi(p[key]) // older versions of systemd omit some: 0
		return n
	}
	return Unit{
		Name: p["Id"], Load: p["LoadState"], Active: p["ActiveState"], Sub: p["SubState"], File: p["UnitFileState"],
		Path: p["FragmentPath"], Result: p["Result"], NeedsReload: p["NeedDaemonReload"] == "yes",
		MainPID: number("MainPID"), Restarts: number("NRestarts"), Description: p["Description"],
	}
}

func properties(b []byte) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "="); ok {
			m[k] = v
		}
	}
	return m
}

// UnitStart starts a unit and waits until systemd reports it as started.
func (r *Runner) UnitStart(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitStart, name, "start")
}

// UnitStop stops a unit and waits until it has ended.
func (r *Runner) UnitStop(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitStop, name, "stop")
}

// UnitRestart restarts a unit, or starts it.
func (r *Runner) UnitRestart(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitRestart, name, "restart")
}

// UnitReload reloads the configuration of a unit, or restarts a unit that cannot reload.
func (r *Runner) UnitReload(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitReload, name, "reload-or-restart")
}

// UnitEnable makes a unit start at boot.
func (r *Runner) UnitEnable(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitEnable, name, "enable", "--quiet")
}

// UnitDisable prevents a unit from starting at boot.
func (r *Runner) UnitDisable(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitDisable, name, "disable", "--quiet")
}

// UnitMask prevents a unit from being started at all.
func (r *Runner) UnitMask(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitMask, name, "mask", "--quiet")
}

// UnitUnmask undoes UnitMask.
func (r *Runner) UnitUnmask(ctx context.Context, name string) error {
	return r.unit(ctx, connector.VerbUnitUnmask, name, "unmask", "--quiet")
}

// UnitResetFailed clears the failed state of a unit. A unit that is not loaded is not an
// error.
func (r *Runner) UnitResetFailed(ctx context.Context, name string) error {
	err := r.unit(ctx, connector.VerbUnitReset, name, "reset-failed")
	if exited(err, 1) {
		return nil
	}
	return err
}

// DaemonReload makes systemd reload its unit files.
func (r *Runner) DaemonReload(ctx context.Context) error {
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbUnitScan, Argv: []string{"systemctl", "daemon-reload"}, Sudo: true})
	return err
}

// Journal returns the last lines of a unit's log, redacted, for people.
func (r *Runner) Journal(ctx context.Context, name string, lines int) (string, error) {
	if err := checkUnit(name); err != nil {
		return "", err
	}
	res, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbUnitJournal, Sudo: true,
		Argv: []string{"journalctl", "--no-pager", "--quiet", "--output=short-iso", "--lines=" + strconv.Itoa(lines), "--unit=" + name},
	})
	return r.opt.Redactor.String(string(res.Stdout)), err
}

func (r *Runner) unit(ctx context.Context, verb, name string, args ...string) error {
	_, err := r.systemctl(ctx, verb, name, args...)
	return err
}

func (r *Runner) systemctl(ctx context.Context, verb, name string, args ...string) (connector.Result, error) {
	if err := checkUnit(name); err != nil {
		return connector.Result{}, err
	}
	argv := append([]string{"systemctl"}, args...)
	return r.do(ctx, connector.Cmd{Verb: verb, Argv: append(argv, "--", name), Sudo: true})
}
