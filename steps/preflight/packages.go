package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/packages"
)

// checkPackages finds hosts on which packages cannot be installed: the bundle has none
// for their operating system, their package tool is not supported, or their package
// database is broken.
func checkPackages(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	if err := packages.Unsupported(h); err != nil {
		return finding(err), nil
	}
	if !slices.Contains(o.Systems, packages.SystemOf(h.Facts)) {
		return finding(packages.NotInBundle(h, o.Systems)), nil
	}
	format := manifest.RPM
	if h.Facts.PackageTool == "apt-get" {
		format = manifest.Deb
	}
	have, err := h.Packages(ctx, format)
	if err != nil {
		return nil, err
	}
	out := held(h, o)
	if have.Busy != "" {
		out = append(out, steps.Finding{What: have.Busy + " is changing packages", Advice: "wait until it ends, or stop it: an installation waits for ten minutes", Warning: true})
	}
	if len(have.Problems) == 0 {
		return out, nil
	}
	ours, err := Begun(ctx, h)
	if err != nil || ours { // an earlier run for this cluster may have been interrupted
		return out, err
	}
	return append(out, finding(packages.Broken(h, format, have.Problems))...), nil
}

// held reports packages that the host protects from changes. Those that are in the
// bundle too may prevent its other packages from being installed.
func held(h *steps.Host, o Options) steps.Findings {
	if len(h.Facts.Held) == 0 {
		return nil
	}
	carried, _ := coming(h, o)
	var ours []string
	for _, p := range h.Facts.Held {
		if slices.Contains(carried, p) {
			ours = append(ours, p)
		}
	}
	if len(ours) > 0 {
		return steps.Findings{{What: "packages of the bundle are held: " + names(ours), Advice: "if the installation fails because of it, release them with apt-mark unhold or dnf versionlock delete", Warning: true}}
	}
	return steps.Findings{{What: "packages are held: " + names(h.Facts.Held), Advice: "no action needed: none of them is in the bundle", Note: true}}
}

// finding converts an error with advice.
func finding(err error) steps.Findings {
	return steps.Findings{{What: err.Error(), Advice: strings.Join(steps.Advice(err), "; ")}}
}
