package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// owner is the field manager of everything that kubexm applies.
const owner = "kubexm"

// Body makes a manifest.
type Body = func(context.Context, *steps.Host) ([]byte, error)

// Apply brings the objects of a manifest about, by server-side apply.
func Apply(name string, needs []manifest.Need, body Body) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, Needs: needs, Timeout: 2 * time.Minute, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			text, err := body(ctx, h)
			if err != nil {
				return false, err
			}
			res, err := kubectl(ctx, h, text, []int{1}, "diff", "--server-side", "--force-conflicts", "--field-manager="+owner, "-f", "-")
			var cmd *runner.CmdError
			if errors.As(err, &cmd) {
				return false, nil // what it is in does not exist yet, or there is no API server
			}
			return err == nil && res.Exit == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			text, err := body(ctx, h)
			if err != nil {
				return err
			}
			_, err = kubectl(ctx, h, text, nil, "apply", "--server-side", "--force-conflicts", "--field-manager="+owner, "-f", "-")
			return err
		},
	}
}

type result struct {
	Exit   int
	Stdout string
}

func kubectl(ctx context.Context, h *steps.Host, stdin []byte, ok []int, args ...string) (result, error) {
	c := runner.Cmd{Argv: append([]string{"kubectl", "--kubeconfig", kubeadm.AdminConf}, args...), OK: ok}
	if stdin != nil {
		c.Stdin = bytes.NewReader(stdin)
	}
	res, err := h.Run(ctx, c)
	return result{Exit: res.Exit, Stdout: strings.TrimSpace(string(res.Stdout))}, err
}
