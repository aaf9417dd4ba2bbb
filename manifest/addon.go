package manifest

// Addon is installed once the cluster runs. The short form is its name alone,
// for an add-on that the matrix knows.
type Addon struct {
	// Name of the add-on. One that the matrix knows needs nothing else.
	Name string `yaml:"name,omitempty" required:"true" format:"label" scalar:"true" effect:"addons" install:"add"`
	// Type: yaml applies a manifest, helm installs a chart. Default: what the
	// matrix says of the name, else helm where values are written or the source
	// is a chart, else yaml.
	Type string `yaml:"type,omitempty" enum:"yaml|helm" effect:"immutable=addon,addons"`
	// Source is where it comes from: an https address or a path of the
	// manifest; for a chart an oci:// reference, a .tgz's address or path, or
	// the address of a repository that holds a chart of the add-on's name.
	// A path is one of a file, or of a chart's folder, beside the config.
	// Default: what the matrix says of the name.
	Source string `yaml:"source,omitempty" effect:"addons" install:"all"`
	// Version of the add-on; for a chart out of a repository its exact one.
	// Default: what the matrix holds for the Kubernetes version.
	Version string `yaml:"version,omitempty" format:"version" effect:"addons" install:"all"`
	// Namespace to install a chart into; the objects of a manifest say themselves
	// where they belong. Default: the add-on's name.
	Namespace string `yaml:"namespace,omitempty" format:"label" effect:"immutable=addon,addons"`
	// Values of the chart. They go into the bundle as they are: put no secrets here.
	Values map[string]any `yaml:"values,omitempty" effect:"addons" install:"all"`
}
