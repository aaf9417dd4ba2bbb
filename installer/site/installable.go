package site

import (
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// CheckBuildable refuses to build a bundle for a cluster that this version cannot install. A
// config without hosts describes no cluster.
func CheckBuildable(r *bundle.Resolution) error {
	if len(r.Cluster.Spec.Hosts) == 0 {
		return nil
	}
	ps := UnsupportedBy(pipeline.Create(), r.Cluster, r.Resolved)
	if len(ps) == 0 {
		return nil
	}
	return &refusal.Error{Err: errors.New(r.File + ": " + NotInstalled(ps)), Kind: refusal.Usage,
		Advice: "`kubexm config validate -f " + r.File + "` prints details; to build the bundle anyway, add --build-only"}
}

// NotInstalled returns the last line of a validation: whether the config can be installed.
func NotInstalled(ps manifest.Problems) string {
	if len(ps) == 0 {
		return "can be installed"
	}
	var fields []string
	for _, p := range ps {
		fields = append(fields, p.Path)
	}
	return "can be built, not installed: " + strings.Join(fields, ", ")
}

// AsWarnings returns the unsupported fields in not as warnings for validation, except those
// that said already reports: the config can still be used to build.
func AsWarnings(not, said manifest.Problems) manifest.Problems {
	var out manifest.Problems
	for _, p := range not {
		if p.Path != "spec.hosts" && !slices.ContainsFunc(said, func(s manifest.Problem) bool { return s.Path == p.Path || strings.HasPrefix(s.Path, p.Path+".") }) {
			p.Severity = manifest.Warning
			out = append(out, p)
		}
	}
	return out
}
