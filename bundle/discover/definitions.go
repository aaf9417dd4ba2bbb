package discover

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Definitions returns the API versions and kinds of the custom resource definitions in a
// manifest, in the form of Helm's capabilities: "monitoring.coreos.com/v1" and
// "monitoring.coreos.com/v1/ServiceMonitor".
func Definitions(text []byte) []string {
	var out []string
	for _, part := range documents(text) {
		var o struct {
			Kind string `yaml:"kind"`
			Spec struct {
				Group    string `yaml:"group"`
				Version  string `yaml:"version"`
				Versions []struct {
					Name string `yaml:"name"`
				} `yaml:"versions"`
				Names struct {
					Kind string `yaml:"kind"`
				} `yaml:"names"`
			} `yaml:"spec"`
		}
		var odd *yaml.TypeError
		if err := yaml.Unmarshal(part, &o); err != nil && !errors.As(err, &odd) {
			continue // In reports the error
		}
		if o.Kind != "CustomResourceDefinition" || o.Spec.Group == "" {
			continue
		}
		for _, v := range append(o.Spec.Versions, struct {
			Name string `yaml:"name"`
		}{o.Spec.Version}) {
			if v.Name != "" {
				out = append(out, o.Spec.Group+"/"+v.Name, o.Spec.Group+"/"+v.Name+"/"+o.Spec.Names.Kind)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
