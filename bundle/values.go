package bundle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// CheckValues validates the values of c's add-ons whose charts are local, in the folder
// base, against the schemas of these charts. It uses no network. It skips a chart with
// missing dependencies, because these may bring their own values.
func CheckValues(c *manifest.Cluster, base string) manifest.Problems {
	var out manifest.Problems
	for _, a := range c.Spec.Addons {
		if a.Form() != manifest.Chart || a.Source == "" || strings.Contains(a.Source, "://") {
			continue
		}
		read, err := fetch.LocalChart(base, a.Source)
		if err != nil {
			p := c.ValuesProblem(slices.IndexFunc(c.Spec.Addons, same(a)), nil, "cannot be checked: "+err.Error(), "a path is relative to the config's folder")
			p.Severity = manifest.Warning
			out = append(out, p)
			continue
		}
		if len(read.Missing()) > 0 {
			continue
		}
		values, err := a.ValuesText()
		if err == nil {
			_, err = read.Render(chart.Options{Release: a.Name, Namespace: a.In(), Kubernetes: c.Spec.Kubernetes.Version, Values: values})
		}
		if refused, ok := errors.AsType[*chart.ValuesError](err); ok {
			out = append(out, valuesProblems(c, a, refused)...)
		}
	}
	out.Sort()
	return out
}

// valuesProblems reports the values of an add-on that a chart rejects, as problems of the
// config.
func valuesProblems(c *manifest.Cluster, a manifest.Addon, e *chart.ValuesError) manifest.Problems {
	at := slices.IndexFunc(c.Spec.Addons, same(a))
	if at < 0 { // the pod network
		at = manifest.NetworkValues
	}
	var out manifest.Problems
	for _, w := range e.Wrong {
		advice := w.Advice
		if advice == "" {
			advice = fmt.Sprintf("see values.schema.json of chart %s for the accepted values", e.Chart)
			if _, sub, ok := strings.Cut(w.Schema, "/"); ok {
				advice = fmt.Sprintf("see values.schema.json of subchart %s of chart %s for the accepted values", sub, e.Chart)
			}
		}
		out = append(out, c.ValuesProblem(at, w.Path, w.Message, advice))
	}
	return out
}

// same matches an add-on by its name and namespace, which identify it.
func same(a manifest.Addon) func(manifest.Addon) bool {
	return func(x manifest.Addon) bool { return x.Name == a.Name && x.Namespace == a.Namespace }
}

// mergeProblems adds the problems that are not in have yet: the same mistake occurs for each
// Kubernetes version.
func mergeProblems(have, more manifest.Problems) manifest.Problems {
	for _, p := range more {
		if !slices.Contains(have, p) {
			have = append(have, p)
		}
	}
	return have
}
