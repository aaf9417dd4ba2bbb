package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// UFW reports whether ufw is active. If ufw is not installed, the error is fs.ErrNotExist.
func (r *Runner) UFW(ctx context.Context) (on bool, err error) {
	res, err := r.script(ctx, connector.VerbUFW, scriptUFW, nil)
	if exited(err, exitAbsent) {
		return false, absent("find program", "ufw")
	}
	if err != nil {
		return false, err
	}
	switch first, _, _ := strings.Cut(string(res.Stdout), "\n"); strings.TrimSpace(first) {
	case "Status: active":
		return true, nil
	case "Status: inactive":
		return false, nil
	default:
		return false, fmt.Errorf("ufw status prints %q", first)
	}
}

// SetUFW enables or disables ufw, now and at boot.
func (r *Runner) SetUFW(ctx context.Context, on bool) error {
	c := connector.Cmd{Verb: connector.VerbUFWOff, Argv: []string{"ufw", "disable"}, Sudo: true}
	if on {
		c.Verb, c.Argv = connector.VerbUFWOn, []string{"ufw", "--force", "enable"}
	}
	_, err := r.do(ctx, c)
	return err
}
