package controlplane

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// Object is a piece of a Kubernetes document; yaml sorts its keys, so equal
// values are equal bytes.
type Object = map[string]any

// Minor is the minor version of Kubernetes: 32 of v1.32.2.
func Minor(c *manifest.Cluster) int {
	var major, n int
	if _, err := fmt.Sscanf(c.Spec.Kubernetes.Version, "v%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

// Encode writes the documents of a file, one after another.
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
