package controlplane

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// Object is a part of a Kubernetes document. Its keys are encoded in sorted order, so the
// encoding is deterministic.
type Object = map[string]any

// Minor returns the minor version of Kubernetes: 32 for v1.32.2.
func Minor(c *manifest.Cluster) int {
	var major, n int
	if _, err := fmt.Sscanf(c.Spec.Kubernetes.Version, "v%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

// Encode returns the documents as one YAML file.
func Encode(docs ...Object) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range docs {
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}
