package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// checkPackages finds hosts that get no packages: the bundle was made for other
// operating systems, their tool is not known, their packages are broken.
func checkPackages(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	if err := op.Unsupported(h); err != nil {
		return finding(err), nil
	}
	if !slices.Contains(o.Systems, op.SystemOf(h.Facts)) {
		return finding(op.NotCarried(h, o.Systems)), nil
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
}

// finding makes a finding of an error with advice.
func finding(err error) steps.Findings {
	return steps.Findings{{What: err.Error(), Advice: strings.Join(steps.Advice(err), "; ")}}
}
