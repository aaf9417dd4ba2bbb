package op

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// object identifies one object of a cluster.
type object struct {
	APIVersion string `json:"apiVersion" yaml:"apiVersion"`
	Kind       string `json:"kind" yaml:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace,omitempty" yaml:"namespace"`
		Name      string `json:"name" yaml:"name"`
	} `json:"metadata" yaml:"metadata"`
}

func (o object) String() string {
	s := o.Kind + " " + o.Metadata.Name
	if o.Metadata.Namespace != "" {
		s = o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
	}
	return s
}

// is reports whether o and x identify the same object. A document without a namespace
// means the namespace default, which live objects state explicitly.
func (o object) is(x object) bool {
	return o.APIVersion == x.APIVersion && o.Kind == x.Kind && o.Metadata.Name == x.Metadata.Name &&
		(o.Metadata.Namespace == x.Metadata.Namespace || o.Metadata.Namespace == "" && x.Metadata.Namespace == "default")
}

// parseObjects returns the objects of a manifest, in its order. Lists are expanded, as
// kubectl does.
func parseObjects(text []byte) ([]object, error) {
	type document struct {
		object `yaml:",inline"`
		Items  []object `yaml:"items"`
	}
	var out []object
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 1; ; n++ {
		var node yaml.Node
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue // an empty document
		}
		var doc document
		if err := node.Decode(&doc); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		some := []object{doc.object}
		if doc.Kind == "List" {
			some = doc.Items
		}
		for _, o := range some {
			if o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
				return nil, fmt.Errorf("document %d: an object needs apiVersion, kind and metadata.name", n)
			}
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it contains no object")
	}
	return out, nil
}

// list returns a List of objects as JSON, for kubectl.
func list[T any](objects []T) ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// live is an object as stored in the cluster.
type live map[string]any

// parseLive parses the output of `kubectl get -o json`: nothing, an object, or a List.
func parseLive(text []byte) ([]live, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	var one live
	if err := json.Unmarshal(text, &one); err != nil {
		return nil, fmt.Errorf("objects of the cluster: %w", err)
	}
	if one["kind"] != "List" {
		return []live{one}, nil
	}
	var all struct {
		Items []live `json:"items"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("objects of the cluster: %w", err)
	}
	return all.Items, nil
}

// id returns the identity of the object.
func (l live) id() object {
	var o object
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return object{}
	}
	return o
}

// bare returns the object without the fields that only the API server sets, so that it can
// be restored.
func (l live) bare() live {
	out := live{}
	for k, v := range l {
		if k != "status" {
			out[k] = v
		}
	}
	meta := map[string]any{}
	if m, ok := l["metadata"].(map[string]any); ok {
		for k, v := range m {
			if !slices.Contains([]string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"}, k) {
				meta[k] = v
			}
		}
	}
	out["metadata"] = meta
	return out
}

// Workload identifies an object that runs pods.
type Workload struct{ Kind, Namespace, Name string }

// Workloads returns the Deployments, DaemonSets, StatefulSets and Jobs of a manifest.
func Workloads(text []byte) ([]Workload, error) {
	objects, err := parseObjects(text)
	if err != nil {
		return nil, err
	}
	var out []Workload
	for _, o := range objects {
		if slices.Contains([]string{"Deployment", "DaemonSet", "StatefulSet", "Job"}, o.Kind) {
			out = append(out, Workload{Kind: o.Kind, Namespace: cmp.Or(o.Metadata.Namespace, "default"), Name: o.Metadata.Name})
		}
	}
	return out, nil
}
