package manifest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// FieldKind is the type of a field's value, as shown to users.
type FieldKind string

// The kinds of values.
const (
	TextField     FieldKind = "text"
	NumberField   FieldKind = "whole number"
	SwitchField   FieldKind = "true or false"
	SecretField   FieldKind = "secret"
	TimeField     FieldKind = "time span"
	PlatformField FieldKind = "platform"
	FlagsField    FieldKind = "flags"
	AnyField      FieldKind = "anything" // a mapping that kubexm passes on unchanged
	MappingField  FieldKind = "mapping"
)

// Field describes one field of the config, from the types and their tags. The JSON Schema,
// `kubexm config explain` and the generated docs use it.
type Field struct {
	Path     string // without indexes and map keys: "spec.hosts.address"; "" is the document
	Name     string // "address"
	Kind     FieldKind
	List     bool   // a list of Kind; a single value is accepted as a list of one
	Map      bool   // a mapping from names that the user chooses to values of Kind
	Required bool   // the field must be set; for a mapping, a field below it
	Default  string // the value of a field that is not set; if "", Doc may describe one
	Enum     []string
	Min, Max string // of a number; "" without a bound
	Format   string // the format of a text; see FormatWords
	Scalar   string // the field that a plain value in place of the mapping sets
	// ShortForm is another form of the mapping: "key=value:effect".
	ShortForm string
	Doc       string // the docstring, in complete sentences
	// Effect is what a change requires in an existing cluster, Install what install does with
	// it. Those of a mapping apply to its fields that have none.
	Effect  Effect
	Install Install
	Fields  []Field
}

// ConfigFields returns the config as a tree of fields.
func ConfigFields() Field {
	return Field{Kind: MappingField, Doc: docstrings["Cluster"], Fields: subFields(reflect.TypeFor[Cluster](), Field{})}
}

// SourcesFields returns a document of kind Sources as a tree of fields, without its header.
func SourcesFields() Field {
	return Field{Path: "spec", Name: "spec", Kind: MappingField, Required: true, Doc: docstrings["Sources"],
		Fields: subFields(reflect.TypeFor[Sources](), Field{Path: "spec"})}
}

// subFields returns the fields of a mapping of type t.
func subFields(t reflect.Type, of Field) []Field {
	var out []Field
	for _, f := range document.Keys(t) {
		out = append(out, newField(f, of))
	}
	return out
}

func newField(f document.Key, of Field) Field {
	out := Field{
		Path: document.Join(of.Path, f.Name), Name: f.Name, Doc: docstrings[f.Owner.Name()+"."+f.Owner.Field(f.Index[len(f.Index)-1]).Name],
		Required: f.Tag.Get("required") == "true", Default: f.Tag.Get("default"), Enum: document.Enum(f.Tag),
		Min: f.Tag.Get("min"), Max: f.Tag.Get("max"), Format: f.Tag.Get("format"),
	}
	out.Effect, out.Install = tagged(f.Tag, of.Effect, of.Install)
	t, optional := f.Type, false
	for {
		switch {
		case t.Kind() == reflect.Pointer:
			optional = true
		case t.Kind() == reflect.Slice && t != argsType:
			out.List = true
		case t.Kind() == reflect.Map && t != anyMap:
			out.Map = true
		default:
			out.Kind = kindOf(t)
			if out.Kind == MappingField {
				out.Fields = subFields(t, out)
				out.Scalar = scalarOf(t)
				always := !out.List && !out.Map && !optional // its required fields must be set even if the mapping is not
				out.Required = out.Required || always && slices.ContainsFunc(out.Fields, func(f Field) bool { return f.Required })
				if t == reflect.TypeFor[Taint]() {
					out.ShortForm = "key=value:effect or key:effect"
				}
			}
			return out
		}
		t = t.Elem()
	}
}

// scalarOf returns the name of the field that a plain value sets, or "".
func scalarOf(t reflect.Type) string {
	for _, f := range document.Keys(t) {
		if f.Tag.Get("scalar") == "true" {
			return f.Name
		}
	}
	return ""
}

func kindOf(t reflect.Type) FieldKind {
	switch t {
	case secretType:
		return SecretField
	case argsType:
		return FlagsField
	case anyMap:
		return AnyField
	case reflect.TypeFor[Duration]():
		return TimeField
	case reflect.TypeFor[Platform]():
		return PlatformField
	}
	switch t.Kind() {
	case reflect.Bool:
		return SwitchField
	case reflect.Int, reflect.Int64:
		return NumberField
	case reflect.Struct:
		return MappingField
	}
	return TextField
}

// Type describes the type of the value: "list of text".
func (f Field) Type() string {
	kind := string(f.Kind)
	switch {
	case f.List && f.Kind == MappingField:
		return "list of mappings"
	case f.List && f.Kind == PlatformField:
		return "list of platforms"
	case f.List:
		return "list of " + kind
	case f.Map && f.Kind == MappingField:
		return "mapping of names to mappings"
	case f.Map:
		return "mapping of names to " + kind
	}
	return kind
}

// DefaultText returns the default in the tag or in the docstring; "" if there is none.
func (f Field) DefaultText() string {
	if f.Default != "" {
		return f.Default
	}
	if _, after, ok := strings.Cut(f.Doc, "Default: "); ok {
		return strings.TrimSuffix(after, ".")
	}
	return ""
}

// Meaning returns the docstring without the sentence about the default.
func (f Field) Meaning() string {
	before, _, _ := strings.Cut(f.Doc, "Default: ")
	return strings.TrimSpace(before)
}

// Summary returns the first sentence of the docstring.
func (f Field) Summary() string {
	meaning := f.Meaning()
	if i := strings.Index(meaning, ". "); i >= 0 {
		return meaning[:i+1]
	}
	return meaning
}

// Allowed describes which values of its type the field accepts; "" for all.
func (f Field) Allowed() string {
	switch {
	case len(f.Enum) > 0:
		return strings.Join(f.Enum, ", ")
	case f.Min != "" && f.Max != "":
		return f.Min + " to " + f.Max
	case f.Min != "":
		return f.Min + " or more"
	}
	return FormatWords(f.Format)
}

// Find returns the field at a path, with or without indexes and the keys of mappings.
func (f Field) Find(path string) (Field, bool) {
	if path = document.Plain(path); path == f.Path {
		return f, true
	}
	for _, sub := range f.Fields {
		if sub.Path == path || strings.HasPrefix(path, sub.Path+".") {
			return sub.Find(path)
		}
	}
	rest, ok := strings.CutPrefix(path, f.Path+".")
	if !ok || !f.Map {
		return Field{}, false
	}
	_, rest, ok = strings.Cut(rest, ".") // the first part is a name that the user chose
	if !ok {
		return f, true
	}
	return Field{Path: f.Path, Fields: f.Fields}.Find(f.Path + "." + rest)
}

// All returns f and every field below it, mappings before their fields.
func (f Field) All() []Field {
	out := []Field{f}
	for _, sub := range f.Fields {
		out = append(out, sub.All()...)
	}
	return out
}

// Bounds returns the range of a number. hasLow and hasHigh are false if there is no bound.
func (f Field) Bounds() (low, high int64, hasLow, hasHigh bool) {
	low, errLow := strconv.ParseInt(f.Min, 10, 64)
	high, errHigh := strconv.ParseInt(f.Max, 10, 64)
	return low, high, errLow == nil, errHigh == nil
}

// OtherSpellings lists the second spellings of the field at path and of its values.
func OtherSpellings(path string) []string {
	var out []string
	for _, a := range Aliases() {
		if a.To != path {
			continue
		}
		var words []string
		for _, w := range a.SortedWords() {
			words = append(words, w+" for "+a.Words[w])
		}
		values := strings.Join(words, ", ")
		switch {
		case a.From == a.To:
			out = append(out, values)
		case values != "":
			out = append(out, a.From+" ("+values+")")
		default:
			out = append(out, a.From)
		}
	}
	return out
}

// MissingFeature returns the feature that the field at path requires and that kubexm does not
// support yet. It returns "" if the field, or a field below it, has an effect today.
func MissingFeature(path string) string {
	if slices.ContainsFunc(SupportedFields(), func(u string) bool { return under(u, path) }) {
		return ""
	}
	for _, w := range UnsupportedFields() {
		if under(path, w.Path) {
			return w.Feature
		}
	}
	return ""
}

// homesOf returns up to three mappings that have a field with a name.
func homesOf(name string) []string {
	var out []string
	for _, f := range ConfigFields().All() {
		if parent := document.Parent(f.Path); f.Name == name && parent != "" && !slices.Contains(out, parent) {
			out = append(out, parent)
		}
	}
	return out[:min(len(out), 3)]
}

// under reports whether path is top or a field below it.
func under(path, top string) bool { return path == top || strings.HasPrefix(path, top+".") }
