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

// hostName is any name that the kernel keeps and that no shell or log misreads: a
// host gets its old one back, though it may be none that a cluster takes. (none)
// is the kernel's own before anybody named it.
var hostName = regexp.MustCompile(`^(\(none\)|[A-Za-z0-9_][A-Za-z0-9._-]{0,63})$`)

// Hostname gives the host's own name.
func (r *Runner) Hostname(ctx context.Context) (string, error) {
	res, err := r.script(ctx, connector.VerbHostname, scriptHostname, nil)
	return strings.TrimSpace(string(res.Stdout)), err
}

// SetHostname gives the host a name until the next boot; /etc/hostname is a file's
// business. The kernel is told directly: hostnamectl needs a bus, and it changes
// /etc/machine-info besides.
func (r *Runner) SetHostname(ctx context.Context, name string) error {
	if !hostName.MatchString(name) {
		return fmt.Errorf("%q is no host name", name)
	}
	_, err := r.script(ctx, connector.VerbHostnameW, scriptSetHostname, nil, name)
	return err
}

// FindProgram gives the path of a program in the search path; none is fs.ErrNotExist.
func (r *Runner) FindProgram(ctx context.Context, name string) (string, error) {
	res, err := r.script(ctx, connector.VerbHasProgram, scriptFind, nil, name)
	if exited(err, exitAbsent) {
		return "", absent("find program", name)
	}
	return strings.TrimSpace(string(res.Stdout)), err
}

// BootID gives what the kernel made up at this boot.
func (r *Runner) BootID(ctx context.Context) (string, error) {
	res, err := r.script(ctx, connector.VerbBootID, scriptBootID, nil)
	return strings.TrimSpace(string(res.Stdout)), err
}

// rebootPoll is the time between two looks at a host that boots.
const rebootPoll = 2 * time.Second

// Reboot boots the host anew and waits until it answers again, for at most the
// given time.
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
				return fmt.Errorf("the host was told to boot and did not answer again within %s: %w", within, errors.Join(err, ctx.Err()))
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

// fatal tells whether waiting for a host makes no sense: it answers, and lets
// nobody in.
func fatal(err error) bool {
	var auth *connector.AuthError
	var key *connector.HostKeyError
	var sudo *connector.SudoError
	return errors.As(err, &auth) || errors.As(err, &key) || errors.As(err, &sudo)
}
