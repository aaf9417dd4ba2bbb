package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// SELinux tells whether SELinux forbids, and not only notes, what its policy does
// not allow. A kernel that runs without it is fs.ErrNotExist.
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

// SetSELinux has SELinux forbid, or only note, until the next boot.
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
