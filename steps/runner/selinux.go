package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// SELinux reports whether SELinux is in enforcing mode. If the kernel runs without SELinux,
// the error is fs.ErrNotExist.
func (r *Runner) SELinux(ctx context.Context) (enforcing bool, err error) {
	res, err := r.script(ctx, connector.VerbSELinux, scriptSELinux, nil)
	if exited(err, exitAbsent) {
		return false, absent("read", "/sys/fs/selinux/enforce")
	}
	if err != nil {
		return false, err
	}
	switch s := strings.TrimSpace(string(res.Stdout)); s {
	case "0", "1":
		return s == "1", nil
	default:
		return false, fmt.Errorf("/sys/fs/selinux/enforce holds %q", s)
	}
}

// SetSELinux sets SELinux to enforcing or permissive mode until the next boot.
func (r *Runner) SetSELinux(ctx context.Context, enforcing bool) error {
	word := "0"
	if enforcing {
		word = "1"
	}
	_, err := r.script(ctx, connector.VerbSELinuxW, scriptSetSELinux, nil, word)
	if exited(err, exitAbsent) {
		return absent("write", "/sys/fs/selinux/enforce")
	}
	return err
}
