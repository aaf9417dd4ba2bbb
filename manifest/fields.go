package manifest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// FieldKind is what a field's value is.
type FieldKind string

// The kinds of values.
const (
	TextField    FieldKind = "text"
	NumberField  FieldKind = "whole number"
	SwitchField  FieldKind = "true or false"
	SecretField  FieldKind = "secret"
	TimeField    FieldKind = "time span"
	PlatField    FieldKind = "platform"
	FlagsField   FieldKind = "flags"
	FreeField    FieldKind = "anything" // a mapping that kubexm hands on as it is
	MappingField FieldKind = "mapping"
)

// Field is what the types of the config say of one field: the decoder, the JSON
// Schema, `kubexm config explain` and the docs all go by it.
type Field struct {
	Path     string // without indexes and map keys: "spec.hosts.address"; "" is the document
	Name     string // "address"
	Kind     FieldKind
	List     bool   // a list of Kind; a single value is taken as a list of one
	Map      bool   // names of the writer's choice, each with a Kind
	Required bool   // has to be written: it, or for a mapping a field of it
	Default  string // what counts when the field is not written; "" when nothing does, or see Doc
	Enum     []string
	Min, Max string // of a number; "" without a bound
	Format   string // the shape of a text; FormatAdvice says it in words
	Scalar   string // the field that a plain value in place of the mapping fills
	// ShortForm is how else the mapping may be written: "key=value:effect".
	ShortForm string
	Doc       string // the docstring: whole sentences
	// Effect is what a change takes in a cluster that exists, Install what install does of
	// it. Of a mapping they hold for its fields that say nothing else.
	Effect  Effect
	Install Install
	Fields  []Field
}

// ConfigFields gives the whole config as a tree.
func ConfigFields() Field {
	return Field{Kind: MappingField, Doc: docstrings["Cluster"], Fields: subFields(reflect.TypeFor[Cluster](), Field{})}
}

// SourcesFields gives a document of kind Sources as a tree, but for its header.
func SourcesFields() Field {
	return Field{Path: "spec", Name: "spec", Kind: MappingField, Required: true, Doc: docstrings["Sources"],
		Fields: subFields(reflect.TypeFor[Sources](), Field{Path: "spec"})}
}

// subFields gives the fields of a mapping of type t.
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
				whole := !out.List && !out.Map && !optional // its required fields are asked for even when it is not written
				out.Required = out.Required || whole && slices.ContainsFunc(out.Fields, func(f Field) bool { return f.Required })
				if t == reflect.TypeFor[Taint]() {
					out.ShortForm = "key=value:effect or key:effect"
				}
			}
			return out
		}
		t = t.Elem()
	}
}

// scalarOf names the field that a plain value fills, "" where none does.
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
		return FreeField
	case reflect.TypeFor[Duration]():
		return TimeField
	case reflect.TypeFor[Platform]():
		return PlatField
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

// Type says the kind of value in words: "list of text".
func (f Field) Type() string {
	kind := string(f.Kind)
	switch {
	case f.List && f.Kind == MappingField:
		return "list of mappings"
	case f.List && f.Kind == PlatField:
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

// DefaultText gives the default in words, as far as the tags or the docstring
// name one.
func (f Field) DefaultText() string {
	if f.Default != "" {
		return f.Default
	}
	if _, after, ok := strings.Cut(f.Doc, "Default: "); ok {
		return strings.TrimSuffix(after, ".")
	}
	return ""
}

// Meaning gives the docstring without its sentence about the default.
func (f Field) Meaning() string {
	before, _, _ := strings.Cut(f.Doc, "Default: ")
	return strings.TrimSpace(before)
}

// Summary gives the first sentence of the docstring.
func (f Field) Summary() string {
	meaning := f.Meaning()
	if i := strings.Index(meaning, ". "); i >= 0 {
		return meaning[:i+1]
	}
	return meaning
}

// Allowed says in words which values the field takes beyond its type.
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

// Find gives the field at a path as people write it, with or without indexes
// and the keys of mappings.
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
	_, rest, ok = strings.Cut(rest, ".") // the first part is a name of the writer's choice
	if !ok {
		return f, true
	}
	return Field{Path: f.Path, Fields: f.Fields}.Find(f.Path + "." + rest)
}

// All gives f and every field under it, mappings before their fields.
func (f Field) All() []Field {
	out := []Field{f}
	for _, sub := range f.Fields {
		out = append(out, sub.All()...)
	}
	return out
}

// Bounds gives the range of a number, with ok false where a side is open.
func (f Field) Bounds() (low, high int64, hasLow, hasHigh bool) {
	low, errLow := strconv.ParseInt(f.Min, 10, 64)
	high, errHigh := strconv.ParseInt(f.Max, 10, 64)
	return low, high, errLow == nil, errHigh == nil
}

// OtherSpellings lists how else the field at path may be written: other places,
// and other words for its values.
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
		said := strings.Join(words, ", ")
		switch {
		case a.From == a.To:
			out = append(out, said)
		case said != "":
			out = append(out, a.From+" ("+said+")")
		default:
			out = append(out, a.From)
		}
	}
	return out
}

// WaitingFor tells what the field at path waits for, "" where something acts on
// it, or on a field under it, today.
func WaitingFor(path string) string {
	if slices.ContainsFunc(Used(), func(u string) bool { return under(u, path) }) {
		return ""
	}
	for _, w := range NotYetBuilt() {
		if under(path, w.Path) {
			return w.For
		}
	}
	return ""
}

// homesOf gives the mappings that do have a field of that name.
func homesOf(name string) []string {
	var out []string
	for _, f := range ConfigFields().All() {
		if parent := document.Parent(f.Path); f.Name == name && parent != "" && !slices.Contains(out, parent) {
			out = append(out, parent)
		}
	}
	return out[:min(len(out), 3)]
}

// under tells whether the field at path is top, or a part of it.
func under(path, top string) bool { return path == top || strings.HasPrefix(path, top+".") }
