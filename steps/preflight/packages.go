package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/packages"
)

// checkPackages finds hosts that get no packages: the bundle was made for other
// operating systems, their tool is not known, their packages are broken.
func checkPackages(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	if err := packages.Unsupported(h); err != nil {
		return finding(err), nil
	}
	if !slices.Contains(o.Systems, packages.SystemOf(h.Facts)) {
		return finding(packages.NotCarried(h, o.Systems)), nil
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
		out = append(out, steps.Finding{What: have.Busy + " changes packages at the moment", Advice: "let it end, or end it: an installation waits for ten minutes", Warning: true})
	}
	if len(have.Trouble) == 0 {
		return out, nil
	}
	ours, err := Begun(ctx, h)
	if err != nil || ours { // an installation of this cluster's own may be under way
		return out, err
	}
	return append(out, finding(packages.Broken(h, format, have.Trouble))...), nil
}

// held finds packages that the host keeps from changes: those that the bundle
// brings, too, may be in the way of what they are needed for.
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
		return steps.Findings{{What: "packages that the bundle brings are held: " + names(ours), Advice: "let them go where the installation fails for it: apt-mark unhold, or dnf versionlock delete", Warning: true}}
	}
	return steps.Findings{{What: "packages are held: " + names(h.Facts.Held), Advice: "nothing: the bundle brings none of them", Note: true}}
}

// finding makes a finding of an error with advice.
func finding(err error) steps.Findings {
	return steps.Findings{{What: err.Error(), Advice: strings.Join(steps.Advice(err), "; ")}}
}
