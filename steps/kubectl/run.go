package kubectl

import (
	"bytes"
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// AdminConf is the administrator's kubeconfig on a master.
const AdminConf = "/etc/kubernetes/admin.conf"

// Run runs kubectl on a master with the administrator's kubeconfig, and returns its output.
func Run(ctx context.Context, h *steps.Host, args ...string) (string, error) {
	out, err := h.Exec(ctx, op.Kubectl(AdminConf, args...)...)
	return string(out), err
}

// Send is Run with input on kubectl's standard input, for commands with -f -. It drops the
// output.
func Send(ctx context.Context, h *steps.Host, input []byte, args ...string) error {
	_, err := h.Run(ctx, runner.Cmd{Argv: op.Kubectl(AdminConf, args...), Stdin: bytes.NewReader(input)})
	return err
}
