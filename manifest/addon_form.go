package manifest

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Form is what the add-on's source is, File (a manifest) or Chart; "" where there
// is no source and the matrix says it.
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

// Packed tells whether the source is an archive or folder of a chart itself,
// rather than a repository that holds many.
func (a Addon) Packed() bool {
	return strings.HasSuffix(a.Source, ".tgz") || strings.HasSuffix(a.Source, ".tar.gz") || !strings.Contains(a.Source, "://")
}

// In is the namespace that a chart is installed into.
func (a Addon) In() string { return cmp.Or(a.Namespace, a.Name) }

// ValuesText gives the values as helm is to have them; nil where there are none.
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
