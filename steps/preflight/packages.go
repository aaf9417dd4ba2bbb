package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Packages finds hosts that get no packages: the bundle was made for other
// operating systems (systems are those that it was made for), their tool is not
// known, their packages are broken.
func Packages(systems []string, say Say) steps.Step {
	return op.Check("preflight.packages", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		if err := op.Unsupported(h); err != nil {
			return finding(err), nil
		}
		if !slices.Contains(systems, op.SystemOf(h.Facts)) {
			return finding(op.NotCarried(h, systems)), nil
		}
		format := manifest.RPM
		if h.Facts.PackageTool == "apt-get" {
			format = manifest.Deb
		}
		have, err := h.Packages(ctx, format)
		if err != nil || len(have.Trouble) == 0 {
			return nil, err
		}
		ours, err := Joined(ctx, h)
		if err != nil || ours { // an installation of this cluster's own may be under way
			return nil, err
		}
		return finding(op.Broken(h, format, have.Trouble)), nil
	}, say)
}

// finding makes a finding of an error with advice.
func finding(err error) steps.Findings {
	return steps.Findings{{What: err.Error(), Advice: strings.Join(steps.Advice(err), "; ")}}
}
