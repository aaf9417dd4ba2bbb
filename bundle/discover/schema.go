package discover

import "go.yaml.in/yaml/v3"

// schema scans the definition of a custom resource. Only defaults lead to pods:
// descriptions and examples mention images that are not run.
func (s *scan) schema(n *yaml.Node, path string, depth int) error {
	if err := s.visit(depth); err != nil {
		return err
	}
	n = real(n)
	if n == nil {
		return nil
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			if err := s.schema(c, index(path, i), depth+1); err != nil {
				return err
			}
		case n.Kind == yaml.MappingNode && i%2 == 1:
			key := n.Content[i-1].Value
			if key == "properties" {
				if err := s.defaults(real(c), join(path, key), depth); err != nil {
					return err
				}
			}
			if err := s.schema(c, join(path, key), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// defaults scans the default of each property as if it were set.
func (s *scan) defaults(properties *yaml.Node, path string, depth int) error {
	if properties == nil || properties.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		key := properties.Content[i].Value
		value := child(properties.Content[i+1], "default")
		if value == nil {
			continue
		}
		at := where{path: join(join(path, key), "default"), key: key}
		if value.Kind == yaml.ScalarNode {
			if _, ok := imageKey(key); ok {
				if ref := normal(text(value), tagged); ref != "" {
					s.add(ref, at.path)
				}
			}
			continue
		}
		if err := s.walk(value, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}
