package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// hostName matches names that are safe in shells and logs. It accepts more than Kubernetes
// does, because a host's original name has to be restored. "(none)" is the kernel's
// default.
var hostName = regexp.MustCompile(`^(\(none\)|[A-Za-z0-9_][A-Za-z0-9._-]{0,63})$`)

// Hostname returns the kernel's host name.
func (r *Runner) Hostname(ctx context.Context) (string, error) {
	res, err := r.script(ctx, connector.VerbHostname, scriptHostname, nil)
	return strings.TrimSpace(string(res.Stdout)), err
}

// SetHostname sets the kernel's host name until the next boot. It does not change
// /etc/hostname. It does not use hostnamectl, which requires D-Bus and also changes
// /etc/machine-info.
func (r *Runner) SetHostname(ctx context.Context, name string) error {
	if !hostName.MatchString(name) {
		return fmt.Errorf("%q is not a valid host name", name)
	}
	_, err := r.script(ctx, connector.VerbHostnameW, scriptSetHostname, nil, name)
	return err
}

// FindProgram returns the path of a program in the search path. If there is none, the
// error is fs.ErrNotExist.
func (r *Runner) FindProgram(ctx context.Context, name string) (string, error) {
	res, err := r.script(ctx, connector.VerbHasProgram, scriptFind, nil, name)
	if exited(err, exitAbsent) {
		return "", absent("find program", name)
	}
	return strings.TrimSpace(string(res.Stdout)), err
}

// BootID returns the kernel's random ID of the current boot.
func (r *Runner) BootID(ctx context.Context) (string, error) {
	res, err := r.script(ctx, connector.VerbBootID, scriptBootID, nil)
	return strings.TrimSpace(string(res.Stdout)), err
}

// rebootPoll is the interval of connection attempts to a rebooting host.
const rebootPoll = 2 * time.Second

// Reboot reboots the host and waits until it answers again. within is the timeout.
func (r *Runner) Reboot(ctx context.Context, within time.Duration) error {
	before, err := r.BootID(ctx)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, connector.Cmd{
		Verb: connector.VerbReboot, Argv: []string{"systemctl", "--no-block", "reboot"}, Sudo: true, Timeout: time.Minute,
	})
	var broken *connector.BrokenError
	if err != nil && !errors.As(err, &broken) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(rebootPoll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the host did not answer within %s after the reboot command: %w", within, errors.Join(err, ctx.Err()))
			}
			return ctx.Err()
		}
		var after string
		if after, err = r.BootID(ctx); err == nil && after != before {
			return nil
		}
		if fatal(err) {
			return err
		}
	}
}

// fatal reports whether waiting for a host is pointless: it answers, but the login, the
// host key verification or sudo fails.
func fatal(err error) bool {
	var auth *connector.AuthError
	var key *connector.HostKeyError
	var sudo *connector.SudoError
	return errors.As(err, &auth) || errors.As(err, &key) || errors.As(err, &sudo)
}
