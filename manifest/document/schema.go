package document

import (
	"encoding"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Schema describes a kind of document, in addition to its Go types.
type Schema struct {
	Name  string // name of the kind of document in messages: "config"
	Start string // advice for an empty or invalid document
	Merge string // advice for a YAML merge key

	Formats map[string]Format // formats of text, by the value of the tag format
	Words   map[string]string // other names for the values of enums, in lower case

	// Types have their own decoding functions and no fields.
	Types map[reflect.Type]Read
	// Short are mappings that can also be a plain value, which the function decodes.
	Short map[reflect.Type]Read

	// Explain returns the advice to read about the field at a path, "" for none. May be nil.
	Explain func(path string) string
	// MappingsWith returns the mappings that have a field with a name. May be nil.
	MappingsWith func(name string) []string
}

// Read decodes n into v, the value at path, and adds problems to d.
type Read func(d *Document, n *yaml.Node, v reflect.Value, path string)

// Format is a format of text fields.
type Format struct {
	Words string                         // what to write, as advice
	Check func(s string) (advice string) // "" if s is valid, else what to do
}

// Key is one field of a mapping. The fields of inlined structs are included.
type Key struct {
	Name  string // in the document
	Tag   reflect.StructTag
	Index []int // for reflect.Value.FieldByIndex
	Type  reflect.Type
	Owner reflect.Type // the struct that declares it
}

// Keys lists the fields of a mapping: those of struct t with a tag yaml.
func Keys(t reflect.Type) []Key {
	var out []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(opts, "inline"):
			for _, in := range Keys(f.Type) {
				in.Index = append([]int{i}, in.Index...)
				out = append(out, in)
			}
		case name != "" && name != "-" && f.IsExported():
			out = append(out, Key{Name: name, Tag: f.Tag, Index: []int{i}, Type: f.Type, Owner: t})
		}
	}
	return out
}

// Enum lists the values that a tag allows; nil if it allows all.
func Enum(tag reflect.StructTag) []string {
	if e := tag.Get("enum"); e != "" {
		return strings.Split(e, "|")
	}
	return nil
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	anyMap   = reflect.TypeFor[map[string]any]()
)

// opaque reports whether a type decodes itself and has no fields.
func (s *Schema) opaque(t reflect.Type) bool {
	return s.Types[t] != nil || reflect.PointerTo(t).Implements(textType)
}
