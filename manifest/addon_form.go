package manifest

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Form returns whether the add-on is a manifest (File) or a Chart. It returns "" for an
// add-on without source, whose form is in the version matrix.
func (a Addon) Form() Kind {
	ext := path.Ext(a.Source)
	switch {
	case a.Source == "" && a.Type == "" && len(a.Values) == 0:
		return ""
	case a.Type == "yaml":
		return File
	case a.Type == "helm" || len(a.Values) > 0 || strings.HasPrefix(a.Source, "oci://"):
		return Chart
	case ext == ".yaml" || ext == ".yml" || ext == ".json":
		return File
	}
	return Chart
}

// Packed reports whether the source is the archive or folder of one chart, not a chart
// repository.
func (a Addon) Packed() bool {
	return strings.HasSuffix(a.Source, ".tgz") || strings.HasSuffix(a.Source, ".tar.gz") || !strings.Contains(a.Source, "://")
}

// In returns the namespace that a chart is installed into.
func (a Addon) In() string { return cmp.Or(a.Namespace, a.Name) }

// ValuesText returns the values as YAML for helm; nil without values.
func (a Addon) ValuesText() ([]byte, error) {
	if len(a.Values) == 0 {
		return nil, nil
	}
	text, err := yaml.Marshal(a.Values)
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", a.Name, err)
	}
	return text, nil
}
