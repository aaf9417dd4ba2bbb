package manifest

// Addon is a manifest or a Helm chart that is installed after the cluster is running. The
// short form is the name alone, for an add-on of the version matrix.
type Addon struct {
	// Name of the add-on. An add-on of the version matrix needs no other field.
	Name string `yaml:"name,omitempty" required:"true" format:"label" scalar:"true" effect:"addons" install:"add"`
	// Type of the add-on: yaml applies a manifest, helm installs a chart. Default: the type
	// in the version matrix, else helm if values are set or source is a chart, else yaml.
	Type string `yaml:"type,omitempty" enum:"yaml|helm" effect:"immutable=addon,addons"`
	// Source of the add-on. For a manifest: an https:// URL or a path. For a chart: an
	// oci:// reference, the URL or path of a .tgz archive, the path of a chart folder, or
	// the URL of a chart repository. The repository must have a chart with the add-on's name.
	// Paths are relative to the config's folder. Default: the source in the version matrix.
	Source string `yaml:"source,omitempty" effect:"addons" install:"all"`
	// Version of the add-on; for a chart from a repository the exact chart version. Default:
	// the version in the version matrix for spec.kubernetes.version.
	Version string `yaml:"version,omitempty" format:"version" effect:"addons" install:"all"`
	// Namespace that a chart is installed into. The objects of a manifest specify their own
	// namespaces. Default: the add-on's name.
	Namespace string `yaml:"namespace,omitempty" format:"label" effect:"immutable=addon,addons"`
	// Values of the chart, as in Helm's values.yaml. They are stored in the bundle
	// unencrypted: do not put secrets here.
	Values map[string]any `yaml:"values,omitempty" effect:"addons" install:"all"`
}
