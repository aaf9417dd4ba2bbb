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

// CheckValues holds the values of the add-ons of c whose charts lie beside the
// config, in the folder base, against the schemas of these charts, and asks
// nobody. A chart that lacks charts which it depends on is not looked at: they may
// bring values of their own.
func CheckValues(c *manifest.Cluster, base string) manifest.Problems {
	var out manifest.Problems
	for _, a := range c.Spec.Addons {
		if a.Form() != manifest.Chart || a.Source == "" || strings.Contains(a.Source, "://") {
			continue
		}
		read, err := fetch.LocalChart(base, a.Source)
		if err != nil {
			p := c.ValuesProblem(slices.IndexFunc(c.Spec.Addons, same(a)), nil, "cannot be checked: "+err.Error(), "a path starts from the config's folder")
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

// valuesProblems says in terms of the config what a chart has against the values
// of an add-on.
func valuesProblems(c *manifest.Cluster, a manifest.Addon, e *chart.ValuesError) manifest.Problems {
	at := slices.IndexFunc(c.Spec.Addons, same(a))
	if at < 0 {
		return manifest.Problems{{Message: e.Error()}}
	}
	var out manifest.Problems
	for _, w := range e.Wrong {
		advice := w.Advice
		if advice == "" {
			advice = fmt.Sprintf("chart %s says in its values.schema.json what it takes", e.Chart)
			if _, sub, ok := strings.Cut(w.Schema, "/"); ok {
				advice = fmt.Sprintf("chart %s says what it takes in the values.schema.json of its subchart %s", e.Chart, sub)
			}
		}
		out = append(out, c.ValuesProblem(at, w.Path, w.Message, advice))
	}
	return out
}

// same finds an add-on: its name and namespace tell it apart.
func same(a manifest.Addon) func(manifest.Addon) bool {
	return func(x manifest.Addon) bool { return x.Name == a.Name && x.Namespace == a.Namespace }
}

// addNew adds the problems that are not there yet: what is wrong is wrong for
// each Kubernetes version.
func addNew(have, more manifest.Problems) manifest.Problems {
	for _, p := range more {
		if !slices.Contains(have, p) {
			have = append(have, p)
		}
	}
	return have
}
