package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// dialect is the version of JSON Schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// object is one schema.
type object = map[string]any

// Cluster returns the JSON Schema (draft 2020-12) of a document of kind Cluster.
func Cluster() map[string]any {
	b := newBuilder()
	root := b.node(manifest.ConfigFields())
	for _, a := range manifest.Aliases() {
		b.alias(a)
	}
	root["$schema"], root["title"] = dialect, "kubexm cluster config"
	root["$defs"] = b.defs
	return root
}

// Sources returns the JSON Schema (draft 2020-12) of a document of kind Sources.
func Sources() map[string]any {
	b := newBuilder()
	return object{
		"$schema": dialect, "title": "kubexm sources", "type": "object", "additionalProperties": false,
		"properties": object{
			"apiVersion": object{"const": manifest.APIVersion}, "kind": object{"const": manifest.SourcesKind},
			"spec": b.node(manifest.SourcesFields()),
		},
		"required": []string{"apiVersion", "kind", "spec"},
	}
}

// builder builds schemas, and stores those that second spellings refer to.
type builder struct {
	targets map[string]bool   // fields that have a second spelling
	defs    object            // their schemas, by path
	fields  map[string]object // the properties of each mapping, by path
}

func newBuilder() *builder {
	b := &builder{targets: map[string]bool{}, defs: object{}, fields: map[string]object{}}
	for _, a := range manifest.Aliases() {
		b.targets[a.To] = true
		if a.Scalar != "" {
			b.targets[a.Scalar] = true
		}
	}
	return b
}

// node returns the schema of a field, or a reference if second spellings refer to it as well.
func (b *builder) node(f manifest.Field) object {
	n := b.value(f)
	switch {
	case f.List:
		// A single value is accepted as a list of one.
		n = object{"anyOf": []object{{"type": "array", "items": n}, n}}
	case f.Map:
		n = object{"type": "object", "additionalProperties": n}
	}
	if f.Doc != "" {
		n["description"] = description(f)
	}
	if d := defaultOf(f); d != nil {
		n["default"] = d
	}
	if !b.targets[f.Path] {
		return n
	}
	b.defs[f.Path] = n
	return reference(f.Path)
}

func reference(path string) object { return object{"$ref": "#/$defs/" + path} }

func description(f manifest.Field) string {
	parts := []string{f.Doc}
	if words := manifest.FormatWords(f.Format); words != "" {
		parts = append(parts, "Takes "+words+".")
	}
	if w := manifest.MissingFeature(f.Path); w != "" {
		parts = append(parts, "Accepted, not yet built: "+w+".")
	}
	return strings.Join(parts, " ")
}

// value returns the schema of one value of a field.
func (b *builder) value(f manifest.Field) object {
	switch f.Kind {
	case manifest.NumberField:
		n := object{"type": "integer"}
		low, high, hasLow, hasHigh := f.Bounds()
		if hasLow {
			n["minimum"] = low
		}
		if hasHigh {
			n["maximum"] = high
		}
		return n
	case manifest.SwitchField:
		return object{"type": "boolean"}
	case manifest.AnyField:
		return object{"type": "object"}
	case manifest.FlagsField:
		return flags()
	case manifest.MappingField:
		return b.mapping(f)
	}
	if len(f.Enum) > 0 {
		return object{"enum": f.Enum}
	}
	if f.Format == "version" || f.Format == "release" {
		return object{"type": []string{"string", "number"}} // 12 and 22.04 look like numbers to YAML
	}
	return object{"type": "string"}
}

// flags returns the schema of flags: a list of name=value or {name, value}, or a mapping.
func flags() object {
	plain := object{"type": []string{"string", "number", "boolean"}}
	pair := object{"type": "object", "properties": object{"name": object{"type": "string"}, "value": plain},
		"required": []string{"name", "value"}, "additionalProperties": false}
	return object{"anyOf": []object{
		{"type": "array", "items": object{"anyOf": []object{{"type": "string", "pattern": "="}, pair}}},
		{"type": "object", "additionalProperties": plain},
	}}
}

func (b *builder) mapping(f manifest.Field) object {
	properties, required, short := object{}, []string{}, object(nil)
	b.fields[f.Path] = properties
	for _, sub := range f.Fields {
		n := b.node(sub)
		properties[sub.Name] = n
		if sub.Required {
			required = append(required, sub.Name)
		}
		if sub.Name == f.Scalar {
			short = n
		}
	}
	n := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		n["required"] = required
	}
	if f.ShortForm != "" {
		short = object{"type": "string", "description": "The short form: " + f.ShortForm + "."}
	}
	if short != nil {
		return object{"anyOf": []object{n, short}}
	}
	return n
}

// defaultOf returns the default of a tag as a JSON value.
func defaultOf(f manifest.Field) any {
	switch {
	case f.Default == "":
		return nil
	case f.List:
		return strings.Split(f.Default, ",")
	case f.Kind == manifest.SwitchField:
		return f.Default == "true"
	case f.Kind == manifest.NumberField:
		if n, err := strconv.ParseInt(f.Default, 10, 64); err == nil {
			return n
		}
	}
	return f.Default
}

// alias adds a second spelling to its mapping.
func (b *builder) alias(a manifest.Alias) {
	n := reference(a.To)
	others := []object{}
	if len(a.Words) > 0 {
		others = append(others, object{"enum": slices.Sorted(maps.Keys(a.Words))})
	}
	if f, ok := manifest.ConfigFields().Find(a.To); ok && len(f.Enum) > 0 {
		others = append(others, object{"const": ""}) // not set
	}
	if a.Scalar != "" {
		others = append(others, reference(a.Scalar))
	}
	if a.Lines {
		others = append(others, object{"type": "string"})
	}
	parent, name := cut(a.From)
	if a.From == a.To {
		b.defs[a.To] = object{"anyOf": append(others, object(maps.Clone(b.defs[a.To].(object))))} //nolint:errcheck // defs holds objects alone
		return
	}
	if len(others) > 0 {
		n = object{"anyOf": append(others, n)}
	}
	n["deprecated"], n["description"] = true, "A second spelling of "+a.To+"."
	fields := b.properties(parent)
	if have, ok := b.fields[a.From]; ok { // a mapping that other second spellings created
		maps.Copy(have, b.fields[a.To])
		n = object{"type": "object", "properties": have, "additionalProperties": false, "deprecated": true, "description": n["description"]}
	}
	fields[name] = n
}

// properties returns the properties of the mapping at path. It creates a mapping that contains
// only second spellings.
func (b *builder) properties(path string) object {
	if p, ok := b.fields[path]; ok {
		return p
	}
	parent, name := cut(path)
	p := object{}
	b.properties(parent)[name] = object{"type": "object", "properties": p, "additionalProperties": false, "deprecated": true}
	b.fields[path] = p
	return p
}

func cut(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}
